// The text that the tools train language models of bytes on.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/data/dataset.h"
#include "frontend/data/labelled_images.h"

namespace mpc::tools {

/// What the help of --text-file says in every tool.
inline constexpr char kTextFileHelp[] =
    "The text of --data=text, which it stands for: any bytes. The first 90 % are for training, the rest for "
    "validation. Default: 47 sonnets by Shakespeare, which come with mpc.";

struct TextDataOptions {
  std::string path;  ///< empty: the sonnets
  std::int64_t tokens = 64;
  std::int64_t batch_size = 32;
  std::int64_t steps = 100;  ///< batches of an epoch
  std::int64_t seed = 1;     ///< seed of the positions of training windows
};

/// Rows of one part: columns "data" and "label" (i32 [tokens]), the bytes of a window and the byte behind each of them.
/// Training has as many rows as an epoch's steps take; validation has all, in order. Errors: those of
/// data::TextDataset.
data::Dataset LoadTextRows(const TextDataOptions& options, data::Split split);

}  // namespace mpc::tools
