"""Planted violations: python3 check_style_test.py. The rules find each, and no more."""
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
SPEC = importlib.util.spec_from_file_location("check_style", pathlib.Path(__file__).with_name("check_style.py"))
check_style = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_style)


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in check_style.FOLDERS:
            (self.root / name).mkdir()
        self.write("docs/architecture.md", "# Architecture\n\n<!-- folders -->\n")
        known = {"OPERATIONS_NAMED": {}}
        for name, value in known.items():
            self.addCleanup(setattr, check_style, name, getattr(check_style, name))
            setattr(check_style, name, value)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def violations(self, rule):
        return [f"{place}: {text}" for place, text in check_style.RULES[rule](self.root)]


class Arrows(Tree):
    def setUp(self):
        super().setUp()
        self.write("runtime/step.cc", '#include "kernels/kernel.h"\n#include <vector>\n#include "generated.inc"\n')
        self.write("kernels/kernel.h", "")
        check_style.update_arrows(self.root)

    def test_includes_that_run_one_way_are_clean(self):
        self.assertEqual(self.violations("arrows"), [])
        self.assertIn("| `runtime` | kernels |", (self.root / "docs/architecture.md").read_text())

    def test_a_cycle_is_found_at_each_of_its_includes(self):
        self.write("kernels/kernel.h", '#include "compiler/pass.h"\n')
        self.write("compiler/pass.h", '#include "runtime/step.h"\n')
        self.write("runtime/step.h", "")
        check_style.update_arrows(self.root)
        found = self.violations("arrows")
        self.assertEqual(len(found), 3, found)
        self.assertIn("compiler: runtime is built on it, by way of others or not: compiler/pass.h includes runtime/step.h",
                      found)

    def test_an_old_table_or_none_is_found(self):
        self.write("runtime/other.cc", '#include "compiler/pass.h"\n')
        self.write("compiler/pass.h", "")
        self.assertIn("is old", self.violations("arrows")[0])
        self.write("docs/architecture.md", "# Architecture\n")
        self.assertIn("has no line", self.violations("arrows")[0])


class Docs(Tree):
    def test_a_link_leads_to_a_heading(self):
        self.write("docs/page.md", "# Page\n\n## A `word`, [linked](page.md)\n\n## Twice\n\n## Twice\n\n```sh\n# Code\n```\n")
        self.write("docs/other.md", "[a](page.md#a-word-linked) [b](page.md#twice-1) [c](#here) [d](page.md#code)\n")
        self.assertEqual([text.split(": ")[-1] for text in self.violations("docs")], ["#here", "page.md#code"])


class TopFolder(Tree):
    @unittest.skipUnless(shutil.which("git"), "git is not installed")
    def test_a_file_that_git_keeps_is_known(self):
        self.write("README.md", "# Read\n")
        self.write("left.capsule", "")
        self.write("ignored.capsule", "")
        subprocess.run(["git", "init", "-q", self.root], check=True)
        subprocess.run(["git", "-C", self.root, "add", "README.md", "left.capsule"], check=True)
        found = self.violations("layers")
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith("left.capsule: "), found)


class Operations(Tree):
    def setUp(self):
        super().setUp()
        self.write("compiler/dialect/ops.td", "".join(
            f'def Mpc_{name}Op : Mpc_Op<"{name.lower()}"> {{\n' for name in "ABCDEFGHIJ"))

    def test_eight_operations_are_taken_and_nine_are_not(self):
        self.write("passes/eight.cc", "isa<AOp, BOp, COp, DOp, EOp, FOp, GOp, HOp, ModuleOp>(Op)")
        self.write("passes/nine.cc", 'isa<AOp, BOp, COp, DOp, EOp, FOp, GOp, HOp>(Op) || name == "i" || name == "mpc.a"')
        self.write("compiler/dialect/ten.cc", "AOp BOp COp DOp EOp FOp GOp HOp IOp JOp")
        self.assertEqual(self.violations("operations"), [
            "passes/nine.cc: names 9 operations; the limit is 8: AOp, BOp, COp, DOp, EOp, FOp, GOp, HOp, IOp"])

    def test_an_exception_that_is_none_any_more_is_found(self):
        self.write("passes/few.cc", "AOp")
        check_style.OPERATIONS_NAMED = {"passes/few.cc": "a reason"}
        self.assertEqual(self.violations("operations"), [
            "passes/few.cc: names few enough operations by now: take it out of OPERATIONS_NAMED"])


class Sentences(Tree):
    LONG = " ".join(["word"] * 13)

    def test_each_kind_of_text_is_read(self):
        long = f"{self.LONG} {self.LONG}."
        self.write("runtime/step.h", f"int x; ///< {long}\n// {self.LONG}\n// {self.LONG}\nint y; ///< of y\n")
        self.write("passes/passes.td", f"def P {{ let description = [{{\n{long}\n}}]; }}\n")
        self.write("docs/page.md", f"# Page\n\n* Short.\n* {long}\n")
        found = self.violations("sentences")
        self.assertEqual([place.split(": ")[0] for place in found],
                         ["docs/page.md:4", "passes/passes.td:1", "runtime/step.h:1", "runtime/step.h:2",
                          "runtime/step.h:4"], found)
        self.assertIn("26 words", found[0])

    def test_what_ends_is_short(self):
        self.write("runtime/step.h", f"// {self.LONG}.\n// {self.LONG}\n//\n// {self.LONG}\n")
        self.write("docs/page.md", f"{self.LONG}\n\n* {self.LONG}\n* {self.LONG}\n\n```\n{self.LONG * 3}\n```\n")
        self.assertEqual(self.violations("sentences"), [])


class Paths(Tree):
    def test_a_function_is_counted_wherever_it_stands(self):
        body = "".join("  if (x > 0) ++x;\n" for _ in range(20))
        for name, text in {"long": f"int Long(int x) {{\n{body}}}\n",
                           "member": f"struct S {{\n  int Long(int x) const {{\n{body}  }}\n}};\n",
                           "made": f"S::S(int x) : x_(x), y_{{1}} {{\n{body}}}\n",
                           "lambda": f"void F() {{\n  auto g = [&](int x) {{\n{body}  }};\n}}\n"}.items():
            with self.subTest(name):
                self.write("runtime/step.cc", text)
                self.assertEqual(len(self.violations("paths")), 1, text)
                self.assertIn("21 paths", self.violations("paths")[0])

    def test_strings_comments_and_neighbours_do_not_count(self):
        ten = "".join("  if (x > 0) ++x;  // if if if\n" for _ in range(10))
        text = f'int A(int x) {{\n{ten}  Say("if && while");\n}}\nint B(int x) {{\n{ten}}}\n'
        self.write("runtime/step.cc", text)
        self.assertEqual(self.violations("paths"), [])


if __name__ == "__main__":
    unittest.main()
