#include "tools/support/text_data.h"

#include <limits>

#include "frontend/data/text.h"

namespace mpc::tools {

data::Dataset LoadTextRows(const TextDataOptions& options, data::Split split) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  return data::TextDataset(
      split, {.path = options.path,
              .tokens = options.tokens,
              .windows = options.steps > most / options.batch_size ? most : options.steps * options.batch_size,
              .seed = static_cast<std::uint64_t>(options.seed)});
}

}  // namespace mpc::tools
