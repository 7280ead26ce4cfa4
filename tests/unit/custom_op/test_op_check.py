"""`faultlens op check`: what it prints and writes, what it refuses, and that no source makes it fail."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import jsonschema
import pytest

import places
from faultlens.cli import main
from faultlens.cli.op.check import explanations
from faultlens.custom_op.check.interpret.unit import Unit
from faultlens.custom_op.check.rules import catalogue, find
from faultlens.custom_op.check.syntax.syntax import Source
from op_sources import findings, kernel

BAD = kernel("    auto m = x.matrix<float>();  // ← here")


def written(folder: Path, text: str, name: str = "probe.cc") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("rule", catalogue(), ids=lambda rule: rule.slug)
def test_each_rule_is_named_and_explained(rule: object) -> None:
    from faultlens.custom_op.check.rule import Rule

    assert isinstance(rule, Rule)
    assert re.fullmatch(r"OP1\d\d", rule.code)
    assert len(rule.explanation) > 150 and len(rule.headline) < 100
    assert find(rule.code.lower()) is find(rule.slug.upper()) is rule
    assert type(rule).__module__.endswith("." + rule.slug.replace("-", "_"))


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in catalogue()}) == len({rule.slug for rule in catalogue()}) == len(catalogue())


def test_the_line_is_shown_as_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, BAD)
    assert main(["op", "check", path]) == 1
    lines = capsys.readouterr().out.splitlines()
    source, marks = next((line, lines[at + 1]) for at, line in enumerate(lines) if "x.matrix" in line and " | " in line)
    assert source.partition(" | ")[2] == "    auto m = x.matrix<float>();  // ← here"
    assert source[marks.index("^") : marks.index("~") + marks.count("~")] == "x.matrix<float>()"
    assert "OP101 unchecked-rank" in " ".join(lines) and "TensorShapeUtils::IsMatrix(x.shape())" in " ".join(lines)
    assert max(len(line) for line in lines if path not in line) <= 80


def test_of_a_long_line_the_part_that_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = kernel(f"\t/* {'-' * 300} */ auto m = x.matrix<float>(); /* {'-' * 300} */")
    assert main(["op", "check", written(tmp_path, long)]) == 1
    lines = capsys.readouterr().out.splitlines()
    source, marks = next((line, lines[at + 1]) for at, line in enumerate(lines) if "x.matrix" in line and " | " in line)
    assert source[marks.index("^") :].startswith("x.matrix<float>()")
    assert len(source) <= 80 and source.count("…") == 2


def test_nothing_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["op", "check", written(tmp_path, kernel(""))]) == 0
    assert "Nothing wrong found" in capsys.readouterr().out


def test_a_comment_allows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for comment in ("    // faultlens: allow OP101 the caller knows\n", "    // faultlens: allow unchecked-rank\n"):
        path = written(tmp_path, kernel(comment + "    auto m = x.matrix<float>();"))
        assert main(["op", "check", path]) == 0
        assert "1 note (-v)" in " ".join(capsys.readouterr().out.split())
        assert main(["op", "check", "-v", path]) == 0
        assert "note OP101" in " ".join(capsys.readouterr().out.split())
    other = written(tmp_path, kernel("    // faultlens: allow OP104\n    auto m = x.matrix<float>();"))
    assert main(["op", "check", other]) == 1


def test_json_and_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, BAD)
    assert main(["op", "check", path, "--json", "-", "--sarif", "found.sarif"]) == 1
    found = json.loads(capsys.readouterr().out)
    schema = json.loads((places.ROOT / "docs" / "op.schema.json").read_text())
    jsonschema.validate(found, schema)
    assert [finding["code"] for finding in found["findings"]] == ["OP101"] and found["ops"] == ["Probe"]
    run = json.loads((tmp_path / "found.sarif").read_text())["runs"][0]
    result = run["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "probe.cc"
    line = BAD.splitlines()[place["region"]["startLine"] - 1]
    column = place["region"]["startColumn"] - 1
    assert line[column : place["region"]["endColumn"] - 1] == "x.matrix<float>()"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "OP101"
    assert result["level"] == "error"


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("OP101", "op101", "unchecked-rank"):
        assert main(["op", "check", "--explain", name]) == 0
        assert capsys.readouterr().out.startswith("OP101 unchecked-rank (error): ")
    for name, told in {"OP201": "not-loadable", "OP301": "crash", "OP401": "heap-overflow"}.items():
        assert main(["op", "check", "--explain", name]) == 0
        assert told in capsys.readouterr().out
    assert main(["op", "check", "--explain", "OP999"]) == 2
    assert "There is no code OP999" in capsys.readouterr().err


def test_each_code_means_one_thing() -> None:
    codes = [code for code, *_ in explanations()]
    assert len(set(codes)) == len(codes) > 70


def test_a_folder_knows_the_ops_of_all_its_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = kernel("    auto v = i.flat<int32>();")
    at = whole.index("REGISTER_OP"), whole.index("class ProbeOp")
    written(tmp_path, whole[: at[1]], "ops.cc")
    alone = written(tmp_path, whole[: at[0]] + whole[at[1] :], "kernels.cc")
    assert main(["op", "check", alone]) == 0
    capsys.readouterr()
    assert main(["op", "check", str(tmp_path)]) == 1
    assert "OP102" in capsys.readouterr().out


def test_classes_in_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = kernel("    Use(x);")
    written(tmp_path, "static void Use(const Tensor& t) { auto m = t.matrix<float>(); }\n", "use.h")
    path = written(tmp_path, '#include "use.h"\n' + whole)
    assert main(["op", "check", path]) == 0  # the header was not asked about
    assert main(["op", "check", path, str(tmp_path / "use.h")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("missing.cc", None, "There is no file"),
        ("notes.txt", b"hello", "is neither C++ nor a library"),
        ("empty", b"", "is neither C++ nor a library"),
    ],
)
def test_what_cannot_be_checked(
    name: str, content: bytes | None, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["op", "check", str(tmp_path / name)]) == 2
    assert says in capsys.readouterr().err
    assert main(["op", "check"]) == 2
    (tmp_path / "folder").mkdir()
    assert main(["op", "check", str(tmp_path / "folder")]) == 2


@pytest.mark.parametrize("text", ["", "int main() { return 0; }\n"])
def test_a_source_without_an_op(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["op", "check", written(tmp_path, text)]) == 2
    assert "There is no op in" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["check", "test"])
def test_an_executable_is_no_library(verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copied = shutil.copy("/bin/ls", tmp_path / "ls.so")
    assert main(["op", verb, str(copied), "--python", sys.executable]) == 2
    assert "is an executable, not a library of ops" in capsys.readouterr().err


def test_no_clean_bill_for_a_kernel_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, kernel("    auto a = ) ) [ [ x;\n    int b = ( ;; } ( ;"))
    assert main(["op", "check", path]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "Nothing found in what could be looked at" in said and "in a kernel)" in said
    assert "Nothing wrong found" not in said


def test_what_cannot_be_read_outside_of_kernels_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path, kernel("", before="template struct struct made::Of<float> extern;"))
    assert main(["op", "check", path]) == 0
    assert "Nothing found in what could be looked at" in " ".join(capsys.readouterr().out.split())
    bad = written(
        tmp_path, kernel("    auto m = x.matrix<float>();", before="template struct struct made::Of<float> extern;")
    )
    assert main(["op", "check", bad]) == 1


def test_a_library_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "op.so").write_bytes(b"\x7fELF" + b"\0" * 100)
    written(tmp_path, kernel(""), "op.cc")
    status = main(["op", "check", str(tmp_path / "op.so")])
    shown = capsys.readouterr()
    assert status in (0, 1), shown.err  # without TensorFlow there is nothing to compare with
    assert f"faultlens op check {tmp_path / 'op.cc'}" in " ".join(shown.out.split())


def test_places_in_macros_are_their_calls() -> None:
    source = kernel("    USE(x);", before="#define USE(t) do { \\\n  auto m = t.matrix<float>(); \\\n} while (false)")
    (finding,) = [each for each in findings(source) if each.code == "OP101"]
    assert finding.span is not None
    assert finding.span.text.strip() == "USE(x);"


def test_types_of_kernels_that_macros_register() -> None:
    source = kernel("", output=False).replace("class ProbeOp", "template <typename T>\nclass ProbeOp")
    source = source.replace('.Input("x: float")', '.Input("x: T")').replace(
        '.Attr("k: int")', '.Attr("T: {float, int32}")'
    )
    source = source.replace("const Tensor& x = ctx->input(0);", "auto v = ctx->input(0).flat<T>();")
    register = re.search(r"REGISTER_KERNEL_BUILDER.*\n", source)
    assert register is not None
    typed = 'REGISTER_KERNEL_BUILDER(Name("Probe").Device(DEVICE_CPU){}, ProbeOp<{}>)'
    for constraint, expected in (('.TypeConstraint<t>("T")', set()), ("", {"OP102"})):
        macro = f"#define REG(t) {typed.format(constraint, 't')}\nREG(float);\nTF_CALL_int32(REG);\n#undef REG\n"
        found = findings(source.replace(register.group(), macro))
        assert {each.code for each in found} & {"OP102"} == expected
    wrong = typed.format('.TypeConstraint<float>("T")', "int32")
    assert "OP102" in {each.code for each in findings(source.replace(register.group(), wrong + ";"))}


@pytest.mark.parametrize("step", [7, 31])
def test_no_source_makes_it_fail(step: int) -> None:
    """Cut anywhere, and with bytes changed."""
    source = kernel(
        "  for (int64_t n = 0; n <= x.NumElements(); ++n) y->flat<float>()(n) = w.vec<float>()(n);"
    ).encode()
    from faultlens.custom_op.check.check import check

    for at in range(300, len(source), step * 9):
        check(Unit([Source("cut.cc", source[:at])]))
        check(Unit([Source("changed.cc", source[:at] + bytes([at % 256]) + source[at + 1 :])]))
    check(Unit([Source("deep.cc", b"void f() { " + b"if (a) {" * 3000 + b"x(0) = 1;" + b"}" * 3000)]))
    check(Unit([Source("nested.cc", b"int a = " + b"(" * 5000 + b"1" + b")" * 5000 + b";")]))
    check(Unit([Source("macros.cc", b"#define A(x) B(x) B(x)\n#define B(x) A(x) A(x)\nvoid f() { A(1) }\n" * 40)]))


def test_help_names_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["op", "check", "--help"])
    assert "--explain" in capsys.readouterr().out
