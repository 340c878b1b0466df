"""perf.csv: whole rows, whatever happens, in whatever file was there."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE

from madengine.core.errors import ConfigurationError
from madengine.reporting.csv_text import CELL_LIMIT, cell_text, csv_line
from madengine.reporting.perf_csv import append_rows, check_perf_csv, place_columns
from madengine.schemas import perf_csv_columns

COLUMNS = ("model", "performance", "metric", "status")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def dicts(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def row(model: str, **values: object) -> dict[str, object]:
    return {"model": model, "performance": "1.5", "metric": "tok/s", "status": "SUCCESS", **values}


def small(path: Path, *models: str) -> None:
    """A file of four columns."""
    append_rows(path, [row(model) for model in models], columns=COLUMNS)


# What stands in the file


def test_a_new_file_has_the_columns_of_the_schema(tmp_path: Path) -> None:
    append_rows(tmp_path / "perf.csv", [row("a")])
    header, only = read(tmp_path / "perf.csv")
    assert header == list(perf_csv_columns())
    assert dict(zip(header, only, strict=True))["metric"] == "tok/s"


def test_a_new_file_has_the_extra_columns_of_its_rows_behind(tmp_path: Path) -> None:
    append_rows(tmp_path / "perf.csv", [row("a", tp="8"), row("b", bs=4)])
    header, first, second = read(tmp_path / "perf.csv")
    assert header[-2:] == ["tp", "bs"]
    assert (first[-2:], second[-2:]) == (["8", ""], ["", "4"])


def test_no_rows_make_no_file(tmp_path: Path) -> None:
    append_rows(tmp_path / "perf.csv", [])
    assert not (tmp_path / "perf.csv").exists()


def test_nothing_but_the_file_is_left_in_the_folder(tmp_path: Path) -> None:
    small(tmp_path / "perf.csv", "a")
    append_rows(tmp_path / "perf.csv", [row("b", tp="8")])
    assert names(tmp_path) == ["perf.csv"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (8, "8"),
        (0.1, "0.1"),
        (["pyt", "vllm"], "pyt,vllm"),
        (("a", 1), "a,1"),
        ({"b": 1, "a": "ü"}, '{"b":1,"a":"ü"}'),
        (Path("docker/x"), "docker/x"),
    ],
)
def test_values_become_text(value: object, text: str) -> None:
    assert cell_text(value) == text


SPREADSHEET = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\r",
    "a\rb",
    "\n",
    "\x85",
    "\u2028",
    "\ufeffmark",
    "'128:128;128:1024'",
    "",
]


def test_hostile_text_comes_back_byte_equal_from_every_column(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    texts = [*HOSTILE, *SPREADSHEET]
    append_rows(path, [dict.fromkeys(perf_csv_columns(), text) for text in texts])
    assert read(path)[1:] == [[text] * 29 for text in texts]


@pytest.mark.parametrize("text", ['"', "\n", ",", "=1+1", "日本語", " a "])
def test_hostile_names_of_extra_columns_come_back_byte_equal(tmp_path: Path, text: str) -> None:
    path = tmp_path / "perf.csv"
    append_rows(path, [row("a")])
    append_rows(path, [row("b", **{"x" + text: text})])
    append_rows(path, [row("c", **{"x" + text: "again"})])
    assert [cells["x" + text] for cells in dicts(path)] == ["", text, "again"]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1, max_size=6))
def test_any_text_comes_back_byte_equal(cells: list[str]) -> None:
    assert list(csv.reader(io.StringIO(csv_line(cells), newline=""))) == [cells]


def test_what_would_spoil_the_file_for_readers_is_escaped_or_cut(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    append_rows(path, [row("a\udc80b", args="x\0y", tags="z" * (CELL_LIMIT + 5))])
    (found,) = dicts(path)
    assert found["model"] == "a\\udc80b"
    assert found["args"] == "x\\x00y"
    assert len(found["tags"]) == CELL_LIMIT
    assert found["tags"].endswith("...[cut]")


# A file that was there


def test_an_existing_file_keeps_its_own_order_of_columns(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text("status,metric,performance,model\nSUCCESS,ms,1,old\n")
    append_rows(path, [row("new")])
    assert read(path)[2] == ["SUCCESS", "tok/s", "1.5", "new"]


def test_an_old_file_gets_the_missing_columns_once_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text('model,performance\nold,1\n"qu,oted","2\n3"\n\nshort\n')
    path.chmod(0o640)
    append_rows(path, [row("new", performance="9")])
    inode = path.stat().st_ino
    append_rows(path, [row("newer", performance="10")])
    assert path.stat().st_ino == inode
    assert path.stat().st_mode & 0o777 == 0o640
    assert read(path) == [
        ["model", "performance", "metric", "status"],
        ["old", "1", "", ""],
        ["qu,oted", "2\n3", "", ""],
        [],
        ["short", "", "", ""],
        ["new", "9", "tok/s", "SUCCESS"],
        ["newer", "10", "tok/s", "SUCCESS"],
    ]


def test_surplus_cells_of_an_old_row_never_come_to_stand_under_a_new_column(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text('model,performance\nold,1,surplus,"a ""b"""\n')
    append_rows(path, [{"model": "new", "metric": "ms"}])
    assert read(path)[1] == ["old", "1", "", "surplus", 'a "b"']


def test_old_rows_keep_their_bytes_when_columns_are_added(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_bytes(b'model,"per\nformance"\r\n"needlessly",\xff\xfe 1\r\n')
    append_rows(path, [{"model": "new", "metric": "ms"}])
    assert path.read_bytes() == b'model,"per\nformance",metric\r\n"needlessly",\xff\xfe 1,\r\nnew,,ms\r\n'


def test_what_is_no_csv_is_copied_as_it_is_when_columns_are_added(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    rest = b'b,"' + b"x" * (CELL_LIMIT + 10) + b"\nc,1\n"
    path.write_bytes(b"model,performance\na,1\n" + rest)
    append_rows(path, [{"model": "new", "metric": "ms"}])
    assert path.read_bytes() == b"model,performance,metric\na,1,\n" + rest + b"new,,ms\n"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"model, performance, metric,status\n", b"a,1.5,tok/s,SUCCESS\n"),
        (b"\xef\xbb\xbfmodel,performance,metric,status\r\n", b"a,1.5,tok/s,SUCCESS\r\n"),
        (b'\xef\xbb\xbf"model",performance,metric,status\n', b"a,1.5,tok/s,SUCCESS\n"),
        (b'"Model","PERFORMANCE","metric","status"\n', b"a,1.5,tok/s,SUCCESS\n"),
        (b'model,"with\nline end",performance,metric,status\n', b"a,,1.5,tok/s,SUCCESS\n"),
        (b"model,performance,metric,status", b"\na,1.5,tok/s,SUCCESS\n"),
        (b"model,performance,model,metric,status\n", b"a,1.5,a,tok/s,SUCCESS\n"),
        (b"model,performance,metric,status,,\n", b"a,1.5,tok/s,SUCCESS,,\n"),
    ],
)
def test_headers_of_all_kinds_are_understood_and_kept(tmp_path: Path, header: bytes, expected: bytes) -> None:
    path = tmp_path / "perf.csv"
    path.write_bytes(header)
    append_rows(path, [row("a")])
    assert path.read_bytes() == header + expected


@pytest.mark.parametrize("contents", [b"", b"\n", b"\r\n \n", b"\xef\xbb\xbf"])
def test_an_existing_file_without_contents_gets_the_header(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "perf.csv"
    path.write_bytes(contents)
    small(path, "a")
    assert read(path) == [list(COLUMNS), ["a", "1.5", "tok/s", "SUCCESS"]]


@pytest.mark.parametrize(
    "contents",
    [
        b"name,value\n1,2\n",
        b"model;performance\n",
        b"\x7fELF\x02\x01\0\0\0",
        "model,performance\n".encode("utf-16"),
        b'"' + b"\n" * 300_000,
        b"x" * (2 << 20),
        b'{"model": 1}\n',
        b"\nmodel,performance\n" + b"\n" * 70_000,
        b"model\rperformance\n",
    ],
)
def test_a_file_that_is_no_perf_csv_is_refused_and_left_alone(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "perf.csv"
    path.write_bytes(contents)
    for attempt in (lambda: append_rows(path, [row("a")]), lambda: check_perf_csv(path)):
        with pytest.raises(ConfigurationError, match=r"perf\.csv: is no perf\.csv"):
            attempt()
    assert path.read_bytes() == contents


def test_a_symbolic_link_is_followed_and_kept(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "perf.csv"
    link.symlink_to("data/real.csv")
    small(link, "a")
    append_rows(link, [row("b", tp="8")])
    assert link.is_symlink()
    assert len(read(tmp_path / "data" / "real.csv")) == 3


@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "no folder", "NUL", "below a file"])
def test_a_path_that_cannot_hold_a_file_is_refused_with_a_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "perf.csv"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "no folder":
        path = tmp_path / "none" / "perf.csv"
    elif kind == "NUL":
        path = tmp_path / "perf\0.csv"
    else:
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "perf.csv"
    for attempt in (lambda: append_rows(path, [row("a")]), lambda: check_perf_csv(path)):
        with pytest.raises(ConfigurationError) as caught:
            attempt()
        assert "perf" in str(caught.value)


def test_the_check_makes_nothing_and_passes_what_can_be_written(tmp_path: Path) -> None:
    check_perf_csv(tmp_path / "perf.csv")
    assert names(tmp_path) == []
    small(tmp_path / "perf.csv", "a")
    check_perf_csv(tmp_path / "perf.csv")


def test_a_read_only_file_is_refused_with_the_rows_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    real_open = os.open

    def refusing(name: object, flags: int, *args: int, **kwargs: int) -> int:
        if str(name) == str(path) and flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied")
        return real_open(name, flags, *args, **kwargs)  # type: ignore[call-overload, no-any-return]

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(ConfigurationError, match=r"cannot be written: permission denied.*not written.*b,1\.5,tok/s"):
        append_rows(path, [row("b")])


def test_the_rows_in_an_error_are_one_line_of_bounded_length(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.mkdir()
    with pytest.raises(ConfigurationError) as caught:
        append_rows(path, [row("a\nb\r", args="x" * 5000)] * 3)
    assert "\n" not in str(caught.value)
    assert "3 in number" in str(caught.value)
    assert len(str(caught.value)) < 3000


@pytest.mark.parametrize(
    ("columns", "names", "takes", "added"),
    [
        (["a", "b"], ["b", "c"], [None, "b"], ["c"]),
        (["TP"], ["tp"], ["tp"], []),
        (["tp"], ["TP", "tp"], ["tp"], ["TP"]),
        (["tp", "Tp"], ["TP", "tp"], ["tp", "TP"], []),
        (["a", "a"], ["a"], ["a", "a"], []),
    ],
)
def test_each_value_finds_its_column(
    columns: list[str], names: list[str], takes: list[str | None], added: list[str]
) -> None:
    assert place_columns(columns, names) == (takes, added)


# Cut ends


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (b"cut,1", ["cut", "1"]),
        (b'cut,"open', ["cut", "open "]),
        (b'cut,"open\nstill', ["cut", "open\nstill "]),
        (b'cut,"closed"', ["cut", "closed"]),
        (b'cut,"half ""', ["cut", 'half " ']),
        (b'cut,"', ["cut", " "]),
        (b"cut,", ["cut", ""]),
    ],
)
@pytest.mark.parametrize("extra", [{}, {"tp": "8"}])
def test_a_cut_last_row_never_merges_with_the_next(
    tmp_path: Path, end: bytes, left: list[str], extra: dict[str, object]
) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    with path.open("ab") as file:
        file.write(end)
    append_rows(path, [row("b", **extra)])
    rows = read(path)
    assert rows[-1] == ["b", "1.5", "tok/s", "SUCCESS", *map(str, extra.values())]
    assert rows[-2][:2] == left
    assert len(rows) == 4


def test_a_cut_row_with_a_cell_beyond_the_limit_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_bytes(b'model,performance\na,"' + b"x" * (CELL_LIMIT + 10))
    append_rows(path, [{"model": "b", "performance": "2"}])
    assert path.read_bytes().endswith(b'x "\nb,2\n')
