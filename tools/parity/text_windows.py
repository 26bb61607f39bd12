"""The bytes that mpc-train reads from a text: frontend/data/text.h, in Python."""

import numpy

WINDOW_STREAM = 0x74657874


def philox(counter, key):
    """Philox-4x32-10: four 32-bit words of a counter and a key; see kernels/scalar/philox.h."""
    mask = 0xFFFFFFFF
    for _ in range(10):
        product0 = 0xD2511F53 * counter[0]
        product1 = 0xCD9E8D57 * counter[2]
        counter = [(product1 >> 32) ^ counter[1] ^ key[0], product1 & mask,
                   (product0 >> 32) ^ counter[3] ^ key[1], product0 & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


class TextWindows:
    """Windows of `tokens` bytes and the byte behind each of theirs, as i64 [rows, tokens] and [rows, tokens]."""

    def __init__(self, path, tokens, seed):
        with open(path, "rb") as file:
            text = numpy.frombuffer(file.read(), dtype=numpy.uint8).astype(numpy.int64)
        border = len(text) // 10 * 9 + len(text) % 10 * 9 // 10
        self.train, self.rest = text[:border], text[border:]
        self.tokens = tokens
        self.seed = seed

    def rows(self, part, begins):
        windows = numpy.stack([part[begin:begin + self.tokens + 1] for begin in begins])
        return windows[:, :-1], windows[:, 1:]

    def training_batch(self, epoch, first_row, rows):
        begins = []
        for row in range(first_row, first_row + rows):
            words = philox([row & 0xFFFFFFFF, row >> 32, epoch, WINDOW_STREAM],
                           [self.seed & 0xFFFFFFFF, self.seed >> 32])
            begins.append((words[0] << 32 | words[1]) * (len(self.train) - self.tokens) >> 64)
        return self.rows(self.train, begins)

    def validation_batches(self, rows):
        begins = range(0, len(self.rest) - self.tokens, self.tokens)
        for first in range(0, len(begins), rows):
            yield self.rows(self.rest, begins[first:first + rows])
