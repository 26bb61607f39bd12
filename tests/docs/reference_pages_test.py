"""Planted faults of the reference: python3 reference_pages_test.py. The check names each, and the row that mends it."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tools/reference/write_pages.py"
OPERATIONS = """namespace mpc {

/// x where x > 0, else alpha * x.
Tensor leaky(const Tensor& x, double alpha = 0.2);
/// Not for users.
namespace internal {
Tensor hidden(const Tensor& x);
}  // namespace internal
}  // namespace mpc
"""
LAYERS = """#include "frontend/graph/ops.h"
namespace mpc::nn {

/// Base of networks.
class Cell {
 public:
  virtual ~Cell() = default;
};

struct LeakyOptions {
  double alpha = 0.2;  ///< the slope | of negative x
  std::vector<std::int64_t> axes = {0, 1};
};

/// A layer of leaky. A second sentence
/// on a second line.
///
/// A second paragraph.
class Leaky : public Cell {
 public:
  MPC_CELL(Leaky, weight)
  explicit Leaky(std::int64_t channels, const LeakyOptions& options = {}) : options_{options}, channels_(channels) {}
  Tensor Construct(const Tensor& x) { return leaky(x, options_.alpha); }

 private:
  Tensor Unseen(const Tensor& x);
  LeakyOptions options_;
};

}  // namespace mpc::nn
"""
ROWS = [
    {"kind": "operation", "name": "leaky", "page": "elementwise", "shapes": "any", "operations": ["leaky_relu", "cast"],
     "mindspore": "mindspore.ops.leaky_relu", "pytorch": None},
    {"kind": "layer", "name": "nn::Leaky", "page": "layers", "shapes": "any", "operations": ["leaky_relu", "exp"],
     "mindspore": None, "pytorch": None},
]


class Reference(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("frontend/include/mpc/mpc.h", '#include "frontend/nn/layers.h"\n')
        self.write("frontend/graph/ops.h", OPERATIONS)
        self.write("frontend/nn/layers.h", LAYERS)
        self.write("tests/lit/tools/Inputs/operations.txt",
                   "cast: amp exempt, pure\nexp: amp deny, pure\nleaky_relu: amp infer, pure, differentiable\n")
        self.write_table(ROWS)
        self.assertEqual(self.run_program(), "")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def write_table(self, rows):
        self.write("tools/reference/table.json", json.dumps(rows))

    def run_program(self, *arguments):
        command = [sys.executable, PROGRAM, f"--root={self.root}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    def page(self, name):
        return (self.root / f"docs/reference/{name}.md").read_text()

    def test_pages_show_what_headers_and_table_say(self):
        layers = self.page("layers")
        self.assertIn("| [`nn::Leaky`](#nnleaky) | any | Deny, Infer | - | - |", layers)
        self.assertIn("```cpp\nLeaky(std::int64_t channels, const LeakyOptions& options = {})\n"
                      "Tensor Construct(const Tensor& x)\n```", layers)
        self.assertIn("A layer of leaky. A second sentence on a second line. ([layers.h](../../frontend/nn/layers.h))", layers)
        self.assertNotIn("second paragraph", layers)
        self.assertIn("| `double alpha` | `0.2` | the slope \\| of negative x |", layers)
        self.assertIn("| `std::vector<std::int64_t> axes` | `{0, 1}` |  |", layers)
        operations = self.page("elementwise")
        self.assertIn("| [`leaky`](#leaky) | any | Infer | `mindspore.ops.leaky_relu` | - |", operations)
        self.assertIn("Tensor leaky(const Tensor& x, double alpha = 0.2)", operations)
        self.assertIn("x where x > 0, else alpha \\* x.", operations)
        self.assertIn("[`nn::Leaky`](layers.md#nnleaky)", self.page("README"))

    def test_text_behind_a_block_of_code_is_shown(self):
        comment = ("/// A layer, with a * b:\n///\n///     y = a;\n///\n/// and else\n///\n///     y = b;\n///\n"
                   "/// It starts\n/// from x < 1.\n")
        first = "/// A layer of leaky. A second sentence\n/// on a second line.\n///\n/// A second paragraph.\n"
        self.write("frontend/nn/layers.h", LAYERS.replace(first, comment))
        self.assertEqual(self.run_program(), "")
        self.assertIn("A layer, with a \\* b:\n\n```\ny = a;\n```\n\nand else\n\n```\ny = b;\n```\n\n"
                      "It starts from x \\< 1. ([layers.h](../../frontend/nn/layers.h))", self.page("layers"))

    def test_fresh_pages_pass(self):
        self.assertEqual(self.run_program("--check"), "")

    def test_another_default_makes_a_page_stale(self):
        self.write("frontend/graph/ops.h", OPERATIONS.replace("alpha = 0.2", "alpha = 0.3"))
        self.assertIn("docs/reference/elementwise.md is stale", self.run_program("--check"))

    def test_another_amp_class_makes_a_page_stale(self):
        self.write("tests/lit/tools/Inputs/operations.txt", "cast: amp exempt\nexp: amp deny\nleaky_relu: amp clear\n")
        self.assertIn("is stale", self.run_program("--check"))

    def test_a_public_name_without_a_row_is_named_with_the_row_to_add(self):
        self.write_table(ROWS[:1])
        found = self.run_program("--check")
        self.assertIn("nn::Leaky of frontend/nn/layers.h has no row", found)
        self.assertIn('{"kind": "layer", "name": "nn::Leaky", "page": "?", "shapes": "?", "operations": ["?"], "mindspore": "?", '
                      '"pytorch": "?"}', found)
        self.assertNotIn("hidden", found)
        self.assertNotIn("Unseen", found)

    def test_an_unanswered_row_is_named(self):
        self.write_table([ROWS[0], {**ROWS[1], "pytorch": "?"}])
        self.assertIn('the row of nn::Leaky still has a "?"', self.run_program("--check"))

    def test_rows_of_nothing_are_named(self):
        self.write_table([*ROWS, {**ROWS[0], "name": "gone"}, {**ROWS[0], "name": "hidden"}])
        found = self.run_program("--check")
        self.assertIn("the row of operation gone names nothing: no public header declares it", found)
        self.assertIn("the row of operation hidden names nothing", found)

    def test_a_row_of_another_kind_or_twice_is_named(self):
        self.write_table([ROWS[0], ROWS[0], {**ROWS[1], "kind": "loss"}])
        found = self.run_program("--check")
        self.assertIn("leaky has two rows", found)
        self.assertIn("the row of loss nn::Leaky names nothing: the headers say it is of kind layer", found)

    def test_operations_and_pages_that_there_are_none_of_are_named(self):
        self.write_table([{**ROWS[0], "operations": ["leaky_relo"]}, {**ROWS[1], "page": "layer"}])
        found = self.run_program("--check")
        self.assertIn("the row of leaky names the operation leaky_relo, which tests/lit/tools/Inputs/operations.txt lacks", found)
        self.assertIn("the row of nn::Leaky names the page layer; there are ", found)

    def test_a_public_name_without_a_comment_is_named(self):
        self.write("frontend/graph/ops.h", OPERATIONS.replace("/// x where x > 0, else alpha * x.\n", ""))
        self.assertIn("leaky of frontend/graph/ops.h has no comment", self.run_program("--check"))


if __name__ == "__main__":
    unittest.main()
