#include "tools/mpc-train/emit.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/registry.h"
#include "runtime/program_file.h"
#include "tools/mpc-train/dcgan.h"
#include "tools/mpc-train/initial_weights.h"
#include "tools/mpc-train/optimizer.h"
#include "tools/support/json_file.h"

namespace mpc::tools {
namespace {

absl::StatusOr<runtime::Package> PackageWorkload(const TrainOptions& options) {
  const absl::StatusOr<std::unique_ptr<models::Workload>> workload =
      models::MakeWorkload(options.model, SizesOf(options));
  if (!workload.ok()) return workload.status();
  if (absl::Status status = Freeze(options, (*workload)->network()); !status.ok()) return status;
  const std::unique_ptr<nn::Optimizer> optimizer =
      MakeOptimizer(options, (*workload)->network().TrainableParams(), TotalSteps(options));
  Model model = (*workload)->MakeModel(*optimizer, {.amp = options.amp,
                                                    .device = options.device,
                                                    .clip_global_norm = ClipNorm(options),
                                                    .clip_value = ClipValue(options)});
  const std::vector<TensorSpec> inputs = (*workload)->TrainInputs(options.batch_size);
  // As the data sets name their columns.
  const bool images = inputs[0].shape.size() == 4;
  return model.MakePackage({{images ? "image" : "data", inputs[0]}, {"label", inputs[1]}});
}

}  // namespace

absl::Status EmitPrograms(const TrainOptions& options, std::ostream* progress) {
  if (absl::Status status = CheckWritable(options.emit_path); !status.ok()) return status;
  std::error_code error;
  if (!options.force && std::filesystem::is_regular_file(options.emit_path, error)) {
    return absl::AlreadyExistsError(absl::StrCat("'", options.emit_path, "' exists; --force writes over it"));
  }
  SetSeed(static_cast<std::uint64_t>(options.seed));
  if (absl::Status status = SetContext(ContextOf(options, options.threads)); !status.ok()) return status;
  absl::StatusOr<runtime::Package> package = options.model == kDcgan ? PackageDcgan(options) : PackageWorkload(options);
  if (!package.ok()) return package.status();
  package->metadata.emplace_back("network", options.model);
  package->metadata.emplace_back("seed", absl::StrCat(options.seed));
  const absl::StatusOr<std::vector<std::uint8_t>> content = runtime::SerializePackage(*package);
  if (!content.ok()) return content.status();
  if (absl::Status status = runtime::WriteFileAtomically(options.emit_path, {*content}); !status.ok()) return status;
  if (progress == nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  std::size_t peak = 0;
  for (const runtime::Program& program : package->programs) {
    names.push_back(program.name);
    peak = std::max(peak, program.planned_bytes());
  }
  const std::string& arch = package->programs.front().arch;
  *progress << absl::StrFormat("wrote %s: %s of %s for %s, batch %d; peak %.1f MiB, file %.1f KiB\n", options.emit_path,
                               absl::StrJoin(names, ", "), options.model, arch.empty() ? options.device : arch,
                               options.batch_size, static_cast<double>(peak) / (1 << 20),
                               static_cast<double>(content->size()) / (1 << 10));
  return absl::OkStatus();
}

}  // namespace mpc::tools
