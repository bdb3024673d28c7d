"""Printed tests: each is the text that a user pastes."""

import pytest

from sluice.explore import AtLeastOnce, Invariant
from sluice.explore.execution import Options, Schedule
from sluice.explore.injection import Injection
from sluice.explore.output.regression import Explored, regression_file, regression_test

KILL = Injection("kill-before", "shop", "OffsetCommit", 1)


class Often(Invariant, frozen=True):
    """An invariant of a test."""

    topic: str
    least: int = 2
    names: tuple[str, ...] = ()


TEST = Explored("test_orders", ["kafka_run", "tmp_path"])
PRINTED = {
    "a test": (
        TEST,
        Schedule((KILL,)),
        Options([AtLeastOnce("orders")]),
        "@pytest.mark.kafka_explore(\n"
        '    replay=["kill-before shop OffsetCommit 1"],\n'
        '    invariants=[AtLeastOnce("orders")],\n'
        ")\n"
        "async def test_orders_after_kill_before(kafka_run, tmp_path):\n"
        "    await test_orders(kafka_run, tmp_path)\n",
    ),
    "a test with all options": (
        TEST,
        Schedule((KILL, KILL), 4, (("records", 2),)),
        Options([Often('a"b', 3, ("c",))], 5, {"num.partitions": 2}, 7),
        "@pytest.mark.kafka_explore(\n"
        '    replay=["kill-before shop OffsetCommit 1", "kill-before shop OffsetCommit 1"],\n'
        "    order=4,\n"
        '    sizes={"records": 2},\n'
        '    invariants=[Often("a\\"b", least=3, names=["c"])],\n'
        "    brokers=5,\n"
        '    config={"num.partitions": 2},\n'
        "    seed=7,\n"
        ")\n"
        "async def test_orders_after_kill_before_and_kill_before(kafka_run, tmp_path):\n"
        "    await test_orders(kafka_run, tmp_path)\n",
    ),
    "a program": (
        Explored("orders"),
        Schedule((), 4),
        Options(),
        "def test_orders_after_another_order():\n    replay(orders, [], order=4)\n",
    ),
}


@pytest.mark.parametrize(("test", "schedule", "options", "expected"), PRINTED.values(), ids=PRINTED)
def test_printed_test(test: Explored, schedule: Schedule, options: Options, expected: str) -> None:
    assert regression_test(test, schedule, options) == expected


def test_file_has_the_imports() -> None:
    found = regression_file(TEST, "shop.test_orders", Schedule((KILL,)), Options([Often("a"), AtLeastOnce("b")]))
    assert found.startswith(
        "import pytest\n"
        "\n"
        "from sluice.explore import AtLeastOnce\n"
        f"from {__name__} import Often\n"
        "from shop.test_orders import test_orders as explored\n"
        "\n"
        "\n"
        "@pytest.mark."
    )
    assert found.endswith("    await explored(kafka_run, tmp_path)\n")
    compile(found, "test", "exec")


def test_values_of_a_parametrized_test_are_imported() -> None:
    test = Explored("test_orders", ["kafka_run"], {"application": test_file_has_the_imports, "most": 3})
    found = regression_file(test, __name__, Schedule((KILL,)), Options())
    assert f"from {__name__} import test_file_has_the_imports\nfrom {__name__} import test_orders as expl" in found
    assert found.endswith("    await explored(kafka_run, application=test_file_has_the_imports, most=3)\n")


def test_program_without_a_name() -> None:
    assert Explored.of_program(lambda run: run) == Explored("program")
