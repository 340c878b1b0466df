"""Cards that are generated: one matrix multiplication for each size."""

from madengine.utils.discover_models import CustomModel

SIZES = (64, 128)


def list_models() -> list[CustomModel]:
    return [
        CustomModel(
            name=f"matmul_{size}",
            dockerfile="../../docker/quickstart",
            scripts="run.sh",
            n_gpus="0",
            owner="madengine",
            timeout=120,
            training_precision="fp64",
            tags=["quickstart", "cpu", "dynamic"],
            args=f"--size {size}",
        )
        for size in SIZES
    ]
