#include "tools/mpc-bench/start.h"

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "frontend/state/safetensors.h"
#include "tools/mpc-bench/bench_model.h"

namespace mpc::tools {

std::string WeightsIn(const std::string& folder) {
  return (std::filesystem::path(folder) / "weights.safetensors").string();
}

std::string BatchesIn(const std::string& folder) {
  return (std::filesystem::path(folder) / "batches.safetensors").string();
}

absl::Status WriteStart(const BenchOptions& row, const std::string& folder) {
  absl::StatusOr<std::unique_ptr<BenchModel>> bench = PrepareBenchModel(row);
  if (!bench.ok()) return bench.status();
  Safetensors content;
  const absl::StatusOr<std::vector<data::Row>> batches = BatchesOf(**bench);
  if (!batches.ok()) return batches.status();
  for (std::size_t batch = 0; batch < batches->size(); ++batch) {
    const data::Row& columns = (*batches)[batch];
    for (std::size_t column = 0; column < columns.size(); ++column) {
      content.tensors.emplace_back(absl::StrCat("batch", batch, ".column", column), columns[column]);
    }
  }
  if (absl::Status status = SaveSafetensors(BatchesIn(folder), content); !status.ok()) return status;
  return SaveCheckpoint((*bench)->network(), WeightsIn(folder), {.names = NameMap::PyTorch()});
}

}  // namespace mpc::tools
