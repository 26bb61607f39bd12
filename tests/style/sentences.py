"""Sentences of comments, of descriptions in .td files and of pages: which are longer than a reader holds at once."""
import re

WORDS_LIMIT = 25

COMMENT_LINE = re.compile(r"\s*///?(?!<)\s?(.*)")
TRAILING = re.compile(r"///<\s?(.*)$")
DESCRIPTION = re.compile(r'description = (?:\[\{(.*?)\}\]|"([^"]*)");', re.DOTALL)
CODE_BLOCK = re.compile(r"```.*?```", re.DOTALL)
# What separates sentences of a page without a full stop: empty lines, items, headings, tables.
PAGE_BREAK = re.compile(r"\n\s*\n|\n(?=[*-] |\d+\. |\||#|<!--)")
# A table, a ruler or a formula: no prose.
NO_PROSE = re.compile(r"\s*(\||===|#|<!--)")


def lines_of(match):
    return "\n" * match.group(0).count("\n")


def long_sentences(text):
    """The sentences of a paragraph that have more words than WORDS_LIMIT, each with their number."""
    for sentence in re.split(r"(?<=[.!?])\s+", re.sub(r"\s+", " ", text).strip()):
        words = sum(1 for word in sentence.split(" ") if re.search(r"\w", word))
        if words > WORDS_LIMIT:
            yield words, sentence


def source_paragraphs(text):
    """The paragraphs of the comments of a source file, each with its line."""
    paragraph, first = [], 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        comment = COMMENT_LINE.match(line)
        if comment and comment.group(1).strip() and not NO_PROSE.match(comment.group(1)):
            first = first if paragraph else number
            paragraph.append(comment.group(1))
            continue
        if paragraph:
            yield first, " ".join(paragraph)
            paragraph = []
        if not comment and (trailing := TRAILING.search(line)):
            yield number, trailing.group(1)


def description_paragraphs(text):
    """The paragraphs of descriptions in TableGen, without code and formulas, which are indented further."""
    for match in DESCRIPTION.finditer(text):
        first = text.count("\n", 0, match.start()) + 1
        body = CODE_BLOCK.sub(lines_of, match.group(1) or match.group(2) or "")
        body = re.sub(r"\n(\s*\||\s{6,})[^\n]*", "\n\n", body)
        for paragraph in re.split(r"\n\s*\n", body):
            yield first, paragraph


def page_paragraphs(text):
    """The paragraphs and items of a page, without code blocks, tables and headings, each with its line."""
    text = CODE_BLOCK.sub(lines_of, text)
    position = 0
    for part in [*PAGE_BREAK.finditer(text), None]:
        paragraph = text[position:part.start() if part else len(text)]
        if paragraph.strip() and not NO_PROSE.match(paragraph):
            yield text.count("\n", 0, position) + 1, paragraph
        position = part.end() if part else len(text)


def violations(path, text):
    """(line, text) of each sentence that is too long, and of each trailing comment that begins in its middle."""
    paragraphs = list(page_paragraphs(text) if path.suffix == ".md" else source_paragraphs(text))
    if path.suffix == ".td":
        paragraphs += description_paragraphs(text)
    for line, paragraph in paragraphs:
        for words, sentence in long_sentences(paragraph):
            yield line, f"a sentence of {words} words; the limit is {WORDS_LIMIT}: {sentence}"
    if path.suffix != ".md":
        for line, content in enumerate(text.splitlines(), 1):
            if re.search(r"///< of\b", content):
                yield line, f"a comment that no noun begins: {content.strip()}"
