#!/usr/bin/env python3
"""What the page of a step shows in Chromium is what the report says: step_page_test.py MPC_OPT MPC_TRAIN.

Without Chromium the pages are written and their data compared, and the test skips with a message.
"""
import collections
import html.parser
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import page_picture  # noqa: E402

OPT, TRAIN = sys.argv.pop(1), sys.argv.pop(1)
BROWSER = page_picture.find_browser()
LEVELS = ["O0", "O1", "O2", "O3", "auto"]
SKIPPED = 77
# An operation chosen and a search; two levels compared and a search.
CHOSEN = "level=O2&op=2&search=bnnet/bn1+backward"
COMPARED = "level=O3&compare=O2&search=conv2d"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def data_of(page):
    """The JSON that the page holds."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def bytes_text(count):
    """As FormatBytes of compiler/report/text_table.cc."""
    if count < 1024:
        return f"{count} bytes"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            break
    return f"{count:.1f} {unit}"


class Shown(html.parser.HTMLParser):
    """The elements of a document with their attributes and texts."""

    VOID = {"meta", "input", "br", "img"}

    def __init__(self, document):
        super().__init__()
        self.elements, self.open = [], []
        self.feed(document)

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if any(element["tag"] == tag for element in self.open):
            while self.open.pop()["tag"] != tag:
                pass

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def by_id(self, name):
        [found] = [element for element in self.elements if element.get("id") == name]
        return found

    def with_class(self, name):
        return [element for element in self.elements if name in element.get("class", "").split()]

    def with_attribute(self, name):
        return [element for element in self.elements if name in element]


class StepPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder, cls.shown = tempfile.TemporaryDirectory(), {}
        cls.model = ["--model=bnnet", "--train", "--batch=8"]
        cls.page = pathlib.Path(cls.folder.name) / "page.html"
        run(OPT, *cls.model, "--amp-level=O2", "--emit=html", "-o", str(cls.page))
        cls.reports = {level: json.loads(run(OPT, *cls.model, f"--amp-level={level}", "--report=json"))
                       for level in LEVELS}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def show(self, fragment):
        """The page at that fragment. Starting the browser takes most of this test's time: each is opened once."""
        if BROWSER is None:
            self.skipTest("no Chromium")
        if fragment not in self.shown:
            self.shown[fragment] = Shown(page_picture.document_of(BROWSER, self.page, fragment))
        return self.shown[fragment]

    def types_of(self, operation):
        return f"{operation['reads'] or '-'} \u2192 {operation['writes'] or '-'}"

    def test_the_page_holds_what_the_reports_say(self):
        data = data_of(self.page.read_text())
        self.assertEqual([level["level"] for level in data["levels"]], LEVELS)
        self.assertEqual(data["opened"], 2)
        for level in data["levels"]:
            report = self.reports[level["level"]]
            texts = data["texts"]
            rows = [[texts[text] for text in row[:7]] + row[7:9] for row in level["operations"]]
            members = ("op", "cell", "direction", "reads", "writes", "compute", "why", "bytes", "flops")
            self.assertEqual(rows, [[operation[name] for name in members] for operation in report["operations"]])
            self.assertEqual(len(level["casts"]), report["cast_count"])
            self.assertEqual(sum(row[3] for row in level["casts"]), report["cast_bytes"])
            self.assertEqual([row[:2] for row in level["regions"]],
                             [[region["bytes"], region["bytes_saved"]] for region in report["regions"]])
            memory, live = report["memory"], level["memory"]["live"]
            self.assertEqual(level["memory"]["peak"], memory["peak"]["instruction"])
            sums = [sum(bytes_of) for bytes_of in zip(*live)]
            self.assertEqual(sums[level["memory"]["peak"]], max(sums))
            self.assertEqual(max(sums), memory["peak"]["bytes"])

    def test_operations_stand_at_their_instructions(self):
        """An operation's storage begins at its instruction, by the memory table's own names."""
        data = data_of(self.page.read_text())
        texts = data["texts"]
        for level in data["levels"]:
            at = collections.defaultdict(set)
            for row in level["operations"]:
                at[row[12]].add((texts[row[0]], texts[row[1]]))
            checked = 0
            for use, op, cell, _, _, first, _, _ in level["memory"]["storage"]:
                if level["memory"]["uses"][use] in ("inputs", "workspaces") or texts[op] == "cast" or not at[first]:
                    continue
                self.assertIn((texts[op], texts[cell]), at[first])
                checked += 1
            self.assertGreater(checked, 15)

    def test_every_level_shows_its_totals_types_and_casts(self):
        for level, fragment in (("O2", CHOSEN), ("O3", COMPARED)):
            report, shown = self.reports[level], self.show(fragment)
            self.assertEqual(shown.by_id("total-casts")["text"], str(report["cast_count"]))
            for name, value in (("cast-bytes", report["cast_bytes"]), ("live-peak", report["memory"]["peak"]["bytes"]),
                                ("arena", report["memory"]["arena_bytes"]), ("state", report["memory"]["state_bytes"]),
                                ("operation-bytes", sum(row["bytes"] for row in report["operations"]))):
                total = shown.by_id(f"total-{name}")
                self.assertEqual((total["value"], total["text"]), (str(value), bytes_text(value)), name)
            self.assertEqual(shown.by_id("total-low-work")["text"], f"{100 * report['matrix_work']['low_share']:.1f} %")
            peak = report["memory"]["peak"]
            self.assertEqual(shown.by_id("peak")["text"], str(peak["instruction"]))
            self.assertEqual(shown.by_id("peak-op")["text"], f"{peak['op']} in {peak['cell']}")
            self.assertEqual(shown.with_attribute("data-drawn")[0]["data-level"], level)
            chips = {int(chip["data-op"]): chip for chip in shown.with_attribute("data-op")}
            self.assertEqual(sorted(chips), [row["ordinal"] for row in report["operations"]])
            for row in report["operations"]:
                chip = chips[row["ordinal"]]
                self.assertIn(row["op"], chip["text"])
                self.assertTrue(chip["text"].endswith(self.types_of(row)), chip["text"])
                written = (row["writes"] or row["reads"]).split(" ")[0]
                self.assertIn(f"type-{written}", chip["class"].split())
            marks = collections.Counter(re.match(r"(\S+) \u2192 (\S+) (\w+),", mark["text"]).groups()
                                        for mark in shown.with_attribute("data-cast"))
            self.assertEqual(marks, {(cast["from"], cast["to"], cast["kind"]): cast["count"] for cast in report["casts"]})

    def test_an_operation_shows_its_reason_in_the_words_of_explain(self):
        shown = self.show(CHOSEN)
        operation = self.reports["O2"]["operations"][1]
        self.assertEqual(shown.by_id("op-name")["text"], operation["op"])
        self.assertEqual(shown.by_id("op-types")["text"], self.types_of(operation))
        self.assertEqual(shown.by_id("op-bytes")["value"], str(operation["bytes"]))
        # An explanation is of the same graph, with the regions of the compiled step.
        said = run(OPT, *self.model, "--amp-level=O2", "--stage=scheduled", "--explain=#2").split("\n")[1:]
        self.assertEqual(shown.by_id("explanation")["text"], "".join(line.strip() for line in said))

    def test_two_levels_differ_as_diff_says(self):
        said = run(OPT, *self.model, "--diff=O2,O3")
        changed, same = re.search(r"operations \((\d+) changed, (\d+) the same\)", said).groups()
        shown = self.show(COMPARED)
        self.assertIn(f"From O2 to O3: {changed} operations changed, {same} the same", shown.by_id("difference")["text"])
        self.assertEqual(len(shown.with_class("before")), int(changed))

    def test_search_finds_operations_by_name_cell_and_reason(self):
        for level, fragment, words in (("O2", CHOSEN, ["bnnet/bn1", "backward"]), ("O3", COMPARED, ["conv2d"])):
            shown = self.show(fragment)
            expected = [row["ordinal"] for row in self.reports[level]["operations"]
                        if all(word in f"{row['op']} {row['cell']} {row['direction']} {row['why']}" for word in words)]
            self.assertEqual(shown.by_id("found")["text"], f"{len(expected)} found")
            self.assertEqual(sorted(int(chip["data-op"]) for chip in shown.with_class("hit")), expected)

    def test_a_page_of_a_training_run_shows_its_step(self):
        page = pathlib.Path(self.folder.name) / "run.html"
        run(TRAIN, "lenet5", "--amp-level=O2", "--epochs=1", "--shift=0", "--quiet", "--amp-verbosity=0",
            f"--report-html={page}")
        data = data_of(page.read_text())
        self.assertEqual([level["level"] for level in data["levels"]], ["O2"])
        self.assertEqual((data["network"], data["function"]), ("lenet5", "train_step"))
        self.assertEqual(len(data["levels"][0]["casts"]), 3)


if __name__ == "__main__":
    program = unittest.main(exit=False)
    if program.result.wasSuccessful() and BROWSER is None:
        print("skipped: chromium is not installed: the page's data are compared, and not what it shows")
        sys.exit(SKIPPED)
    sys.exit(not program.result.wasSuccessful())
