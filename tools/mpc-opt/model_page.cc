#include "tools/mpc-opt/model_page.h"

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/driver/compiler.h"
#include "compiler/report/step_page.h"
#include "tools/mpc-opt/network_source.h"

namespace mpc::opt {
namespace {

constexpr std::array kLevels = {"O0", "O1", "O2", "O3", "auto"};

absl::StatusOr<compiler::CompileResult> CompileAt(const MadeNetwork& network, ModelRequest request,
                                                  const std::string& level) {
  request.amp.level = level;
  absl::StatusOr<ModelSource> source = TraceNetwork(network, request);
  if (!source.ok()) return source.status();
  return compiler::Compile(source->traced, source->options);
}

}  // namespace

absl::StatusOr<std::string> ModelPage(const ModelRequest& request) {
  const absl::StatusOr<MadeNetwork> network = MakeNetwork(request.model);
  if (!network.ok()) return network.status();
  const std::string wanted = request.amp.level.empty() ? "O2" : request.amp.level;
  // A level that does not exist is refused in the words of tracing.
  absl::StatusOr<compiler::CompileResult> opened = CompileAt(*network, request, wanted);
  if (!opened.ok()) return opened.status();
  std::vector<absl::StatusOr<compiler::CompileResult>> results;
  std::size_t number = 0;
  for (const char* level : kLevels) {
    if (level == wanted) {
      number = results.size();
      continue;
    }
    ModelRequest other = request;
    // O0 has no low type: one that was given is that of the other levels.
    if (std::string_view(level) == "O0") other.amp.dtype = {};
    results.push_back(CompileAt(*network, other, level));
  }
  results.insert(results.begin() + static_cast<std::ptrdiff_t>(number), std::move(opened));
  std::vector<compiler::PageLevel> levels;
  for (const auto& result : results) {
    levels.push_back(
        {kLevels[levels.size()], result.ok() ? &*result : nullptr, std::string(result.status().message())});
  }
  return compiler::StepPage(network->workload->network().TypeName(), levels, number);
}

}  // namespace mpc::opt
