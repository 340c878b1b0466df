"""``python -m madengine``."""

from madengine.cli.main import console

if __name__ == "__main__":
    console()
