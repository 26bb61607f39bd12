"""Planted violations: python3 check_style_test.py. The rules `arrows` and `operations` find each, and no more."""
import importlib.util
import pathlib
import tempfile
import unittest

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


if __name__ == "__main__":
    unittest.main()
