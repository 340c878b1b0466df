# Any Linux with bash and Python 3 will do; name another base with
#   --additional-context '{"docker_build_arg": {"BASE_DOCKER": "my/image:tag"}}'
ARG BASE_DOCKER=python:3.12-slim
FROM $BASE_DOCKER
WORKDIR /myworkspace
