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
  std::int64_t tokens = 64;  ///< of a window
  std::int64_t windows = 0;  ///< training windows of an epoch; 0: as many as hold as many bytes as there are
  std::uint64_t seed = 1;    ///< of where training windows begin
};

/// Columns "data" and "label" (i32 [tokens]): the bytes of a window, and for each of them the byte that follows.
///
/// The first nine tenths of the bytes are for training, the rest for validation (Split::kTest). A training window
/// begins anywhere in its part: at floor(u * (bytes - tokens)), u in [0, 1) being words 0 and 1 of Philox at (seed,
/// epoch, row), so that a run which resumes in the middle of an epoch reads what it would have read. Validation windows
/// stand one behind the other: each byte of the part is predicted once, but for the first one and for fewer than
/// `tokens` at the end.
///
/// Errors (in the data set's status): the file is missing (every place tried), a folder, damaged or empty; a part that
/// is shorter than a window and the byte behind it.
Dataset TextDataset(Split split, const TextOptions& options = {});

}  // namespace mpc::data
