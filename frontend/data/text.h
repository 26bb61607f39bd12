// Text as windows of bytes: what a language model of bytes learns from.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::data {

/// Every byte is a token: no text needs another vocabulary.
inline constexpr std::int64_t kByteVocabulary = 256;

struct TextOptions {
  std::string path;          ///< plain or gzip-compressed; empty: `sonnets.txt` in DataFolders()
  std::int64_t tokens = 64;  ///< bytes of a window
  std::int64_t windows = 0;  ///< training windows of an epoch; 0: bytes for training / tokens, rounded down
  std::uint64_t seed = 1;    ///< seed of the positions of training windows
  SamplingOptions sampling;  ///< which of the windows are given
};

/// Columns "data" and "label" (i32 [tokens]): the bytes of a window, and for each of them the byte that follows.
///
/// The first nine tenths of the bytes are for training, the rest for validation (Split::kTest). A training window
/// begins at a random position of its part: floor(u * (bytes - tokens)). u in [0, 1) comes from words 0 and 1 of Philox
/// at (seed, epoch, row). A run that resumes within an epoch therefore reads the windows that it would have read.
/// Validation windows follow each other without overlap. Each byte of the part is predicted once, except the first byte
/// and fewer than `tokens` bytes at the end.
///
/// Errors (in the data set's status): the file is missing (every path tried is named), a folder, damaged or empty. A
/// part that is shorter than a window and the byte behind it is an error too.
Dataset TextDataset(Split split, const TextOptions& options = {});

}  // namespace mpc::data
