"""Reading CSV files that others wrote."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madengine.reporting import csv_rows
from madengine.reporting.csv_rows import LINE_LIMIT, Header, NotCsvError, read_header, read_rows
from madengine.reporting.plain_file import MissingFileError, NotReadableError


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "x.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(path: Path) -> list[tuple[int, list[str]]]:
    return [(row.line, row.cells) for row in read_rows(path)]


@pytest.mark.parametrize(
    "content",
    [
        "model,performance\na,1\nb,2\n",
        "model,performance\na,1\nb,2",
        "model,performance\r\na,1\r\nb,2\r\n",
        "model,performance\ra,1\rb,2\r",
        "model,performance\ra,1\rb,2",
        "\ufeffmodel,performance\na,1\nb,2\n",
        '"model","performance"\n"a","1"\n"b","2"\n',
    ],
)
def test_every_line_break_quoting_and_byte_order_mark_reads_the_same(content: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    assert read_header(path) == Header.of(["model", "performance"])
    assert cells(path) == [(2, ["a", "1"]), (3, ["b", "2"])]


def test_header_names_are_stripped_and_compared_without_case(tmp_path: Path) -> None:
    header = read_header(written(tmp_path, "\ufeff Model ,\"'Performance'\",\tMETRIC (ms)\u00a0, 'x'\n"))
    assert header is not None
    assert header.names == ("Model", "Performance", "METRIC (ms)", "x")
    assert header.keys == ("model", "performance", "metric (ms)", "x")
    assert header.positions == {"model": 0, "performance": 1, "metric (ms)": 2, "x": 3}


def test_of_two_columns_of_one_name_the_first_is_meant(tmp_path: Path) -> None:
    (row,) = read_rows(written(tmp_path, "a,A,b\n1,2,3\n"))
    assert row.get("a") == "1"


def test_blank_rows_are_passed_over_and_lines_still_count(tmp_path: Path) -> None:
    path = written(tmp_path, "\n , \na,b\n\n,\n1,2\n\n3,4\n\n")
    assert read_header(path) == Header.of(["a", "b"])
    assert cells(path) == [(6, ["1", "2"]), (8, ["3", "4"])]


def test_a_quoted_cell_may_hold_commas_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = written(tmp_path, 'a,b\n"1,5","x ""y""\r\nz"\n3,4\n')
    assert cells(path) == [(2, ["1,5", 'x "y"\nz']), (4, ["3", "4"])]


def test_a_repeated_header_is_no_row(tmp_path: Path) -> None:
    path = written(tmp_path, 'model,performance,metric\na,1,x\n Model ,"PERFORMANCE",metric\nb,2,y\n')
    assert cells(path) == [(2, ["a", "1", "x"]), (4, ["b", "2", "y"])]


def test_a_repeated_header_without_a_metric_column_is_no_row_either(tmp_path: Path) -> None:
    path = written(tmp_path, "model,performance\na,1\nModel,Performance\nb,2\nperformance,model\n")
    assert cells(path) == [(2, ["a", "1"]), (4, ["b", "2"]), (5, ["performance", "model"])]


def test_a_header_with_other_columns_holds_for_the_rows_that_follow(tmp_path: Path) -> None:
    path = written(tmp_path, "model,performance,metric\na,1,x\nperformance,metric,model,run\n2,y,b,7\n")
    first, second = read_rows(path)
    assert (first.get("model"), first.get("performance"), first.get("run")) == ("a", "1", "")
    assert (second.get("model"), second.get("performance"), second.get("run")) == ("b", "2", "7")


@pytest.mark.parametrize("row", ["performance,1,x", "a,performance,x", "a,1,the performance"])
def test_a_row_that_only_mentions_performance_is_a_row(row: str, tmp_path: Path) -> None:
    assert cells(written(tmp_path, f"model,performance,metric\n{row}\n")) == [(2, row.split(","))]


def test_cells_are_stripped_and_missing_ones_empty(tmp_path: Path) -> None:
    (row,) = read_rows(written(tmp_path, "a,b,c\n 'x' , \"y\"\n"))
    assert (row.get("a"), row.get("b"), row.get("c"), row.get("d")) == ("x", "y", "", "")


@pytest.mark.parametrize(
    ("row", "surplus"),
    [
        ("1,2", 0),
        ("1", 0),
        ("1,2,", 0),
        ("1,2, ,", 0),
        ("1,2,3", 1),
        ("1,2,,4", 2),
        ("1,2,3,", 1),
        (",,3", 1),
        ("1,", 0),
    ],
)
def test_cells_beyond_the_header_are_counted_unless_they_are_blank(row: str, surplus: int, tmp_path: Path) -> None:
    (read,) = read_rows(written(tmp_path, f"a,b\n{row}\n"))
    assert read.surplus == surplus


@pytest.mark.parametrize("content", [b"", b"\n\r\n", b"\xef\xbb\xbf", b" , \n"])
def test_a_file_without_anything_has_no_header(content: bytes, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    assert read_header(path) is None
    assert cells(path) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a,b\n1,2\n".encode("utf-16"), "line 1 holds NUL bytes, as binary files and UTF-16 text do"),
        (b"a,b\n1,\x00\n", "line 2 holds NUL bytes"),
        ("a,b\ngrün,1\n".encode("latin-1"), "line 2 is not UTF-8 text"),
        (b"\x89PNG\r\n\x1a\n", "line 1 is not UTF-8 text"),
        (b'a,b\n1,2\n"3,4\n5,6\n', "line 3: a quote is opened there and never closed"),
        (b'a,b\n1,"2', "line 2: a quote is opened there and never closed"),
        (b"a,b\n1," + b"x" * 200_000, "line 2: field larger than field limit"),
        (b"a,b\n" + b"x" * (LINE_LIMIT + 1), "line 2 is longer than 1,048,576 bytes"),
    ],
)
def test_what_is_no_csv_text_says_so_with_its_line(content: bytes, why: str, tmp_path: Path) -> None:
    path = written(tmp_path, content)
    with pytest.raises(NotCsvError, match="line") as error:
        cells(path)
    assert str(error.value).startswith(why)


def test_a_line_of_the_limit_is_read(tmp_path: Path) -> None:
    line = ",".join(["x" * 99] * (LINE_LIMIT // 100))
    assert len(cells(written(tmp_path, f"a,b\n{line}\n"))) == 1


def test_rows_before_the_damage_are_handed_out(tmp_path: Path) -> None:
    rows = read_rows(written(tmp_path, b"a,b\n1,2\n\xff\n"))
    assert next(rows).cells == ["1", "2"]
    with pytest.raises(NotCsvError):
        next(rows)


def test_only_a_regular_file_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    with pytest.raises(MissingFileError, match="there is no such file"):
        read_header(tmp_path / "missing.csv")
    with pytest.raises(MissingFileError, match="there is no such file"):
        read_header(tmp_path / "file" / "x.csv")
    with pytest.raises(NotReadableError, match="it is a directory"):
        read_header(tmp_path)
    with pytest.raises(NotReadableError, match="it is not a regular file"):
        read_header(tmp_path / "pipe")
    with pytest.raises(NotReadableError, match="File name too long"):
        read_header(tmp_path / ("x" * 300))
    with pytest.raises(NotReadableError, match="null"):
        read_header(tmp_path / "a\0b")


def test_a_read_that_fails_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(csv_rows, "open_plain", lambda path: Broken())
    with pytest.raises(NotReadableError, match="line 1: Input/output error"):
        read_header(tmp_path / "x.csv")


def test_a_file_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: object, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(NotReadableError, match="there is no permission to read it"):
        read_header(tmp_path / "x.csv")


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.binary(max_size=300), st.text(alphabet='ab,"\n\r \ufeff1.', max_size=80).map(str.encode)))
def test_no_bytes_raise_anything_but_a_reason(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_bytes(content)
    try:
        for row in read_rows(path):
            assert row.surplus >= 0
            assert row.line >= 1
    except NotReadableError as error:
        assert str(error)
