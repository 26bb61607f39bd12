// Every cuDNN plan of three networks is finalised, for GPUs that are not here, as loading a Program does it: engines by
// their names, code compiled where an engine needs that. A stand-in for the driver's library takes the code.
//   cudnn_engines_test [--all-models] [--table]
// --all-models: the plans of all models. --table: what the plans need, as docs/gpu.md has it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "kernels/cuda/library/cudnn_kernel.h"
#include "tests/cuda/driver_stub.h"
#include "tests/cuda/model_kernels.h"

namespace mpc::testing {
namespace {

bool all_models = false;
bool print_table = false;
int (*loaded_architecture)() = nullptr;  ///< of the stand-in

/// Each network at every level, as it trains; residual networks with statistics in their convolutions too.
std::vector<ModelStep> StepsOfThreeNetworks() {
  constexpr std::pair<const char*, std::int64_t> kNetworks[] = {
      {"lenet5", 1024}, {"resnet50-imagenet", 256}, {"gpt2", 32}};
  std::vector<ModelStep> steps;
  for (const auto& [model, batch] : kNetworks) {
    steps.push_back({model, batch, /*train=*/true, "O0", std::nullopt});
    steps.push_back({model, batch, /*train=*/true, "O2", DType::kF16});
    steps.push_back({model, batch, /*train=*/true, "O2", DType::kBF16});
  }
  steps.push_back({"resnet50-imagenet", 256, /*train=*/true, "O2", DType::kF16, /*conv_statistics=*/true});
  return steps;
}

const std::map<std::string, ModelKernel>& Kernels() {
  static const auto* const kernels =
      new auto(CudnnOperationsOf(all_models ? StepsOfAllModels() : StepsOfThreeNetworks()));
  return *kernels;
}

/// What one plan needs, or all plans of one operation of one network.
struct Needs {
  int plans = 0;
  int compiled = 0;  ///< at run time, by cuDNN
  std::size_t most_workspace = 0;
  double seconds = 0;
  double most_seconds = 0;

  void Add(const Needs& other) {
    plans += other.plans;
    compiled += other.compiled;
    most_workspace = std::max(most_workspace, other.most_workspace);
    seconds += other.seconds;
    most_seconds = std::max(most_seconds, other.most_seconds);
  }
};

/// By architecture, network and operation.
using NeedsTable = std::map<std::tuple<int, std::string, std::string>, Needs>;

void Print(const NeedsTable& table) {
  std::printf("| GPU | network | operation | plans | compiled at run time | most workspace | seconds | longest |\n");
  std::printf("|---|---|---|---|---|---|---|---|\n");
  for (const auto& [key, needs] : table) {
    const auto& [architecture, network, operation] = key;
    std::printf("| sm_%d | %s | %s | %d | %d | %.1f MiB | %.2f | %.2f |\n", architecture, network.c_str(),
                operation.c_str(), needs.plans, needs.compiled, static_cast<double>(needs.most_workspace) / (1 << 20),
                needs.seconds, needs.most_seconds);
  }
}

class CudnnEngines : public ::testing::TestWithParam<int> {
 protected:
  /// Makes the kernel of `spec` as loading does, from the name of its engine, and finalises its plans. No plans: the
  /// kernel is not cuDNN's.
  Needs Finalise(const KernelSpec& spec) {
    cuda::KernelContext context;
    context.target.compute_capability = GetParam();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> planned = cuda::CreateKernel(spec, context);
    EXPECT_TRUE(planned.ok()) << planned.status();
    if (!planned.ok() || dynamic_cast<const cuda::CudnnKernel*>(planned->get()) == nullptr) return {};
    context.choice = (*planned)->choice();

    loaded_architecture();  // from here on
    const auto begin = std::chrono::steady_clock::now();
    const absl::StatusOr<std::unique_ptr<cuda::Kernel>> loaded = cuda::CreateKernel(spec, context);
    EXPECT_TRUE(loaded.ok()) << context.choice << ": " << loaded.status();
    if (!loaded.ok()) return {};
    const absl::Status status = dynamic_cast<cuda::CudnnKernel&>(**loaded).BuildPlans();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    EXPECT_TRUE(status.ok()) << context.choice << ": " << status;
    const int architecture = loaded_architecture();
    if (architecture != 0) {
      EXPECT_EQ(architecture, GetParam()) << context.choice << " is compiled for another GPU";
    }
    // The plan of a Program's memory counts what the engine said before it was compiled.
    EXPECT_EQ((*loaded)->workspace_bytes(), (*planned)->workspace_bytes()) << context.choice;
    EXPECT_LE((*loaded)->workspace_bytes(), context.workspace_cap) << context.choice;
    return {1, architecture != 0 ? 1 : 0, (*loaded)->workspace_bytes(), seconds, seconds};
  }
};

TEST_P(CudnnEngines, OfThreeNetworksAreFinalisedWithTheWorkspaceThatWasPlanned) {
  NeedsTable table;
  for (const auto& [key, kernel] : Kernels()) {
    SCOPED_TRACE(kernel.step.model + " " + kernel.step.level + ": " + key);
    const Needs needs = Finalise(kernel.spec);
    if (needs.plans > 0) table[{GetParam(), kernel.step.model, kernel.spec.name}].Add(needs);
  }
  std::set<std::string> compiled;
  int plans = 0;
  for (const auto& [key, needs] : table) {
    plans += needs.plans;
    if (needs.compiled > 0) compiled.insert(std::get<2>(key));
  }
  EXPECT_GT(plans, 100);
  EXPECT_EQ(compiled, (std::set<std::string>{"packed_attention", "packed_attention_grad"}));
  if (print_table) Print(table);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CudnnEngines, ::testing::Values(80, 90),
                         [](const auto& info) { return "Sm" + std::to_string(info.param); });

}  // namespace

/// Opens the stand-in before anything looks for a driver: whoever opens libcuda.so.1 from now on gets this one.
bool OpenDriverStub() {
  void* const library = dlopen(MPC_TEST_DRIVER_STUB, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::cerr << dlerror() << "\n";
    return false;
  }
  loaded_architecture = reinterpret_cast<decltype(loaded_architecture)>(dlsym(library, "MpcLoadedArchitecture"));
  return loaded_architecture != nullptr;
}

bool ReadArguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--all-models") == 0) {
      all_models = true;
    } else if (std::strcmp(argv[i], "--table") == 0) {
      print_table = true;
    } else {
      std::cerr << "cudnn_engines_test takes --all-models, --table and GoogleTest's options; got " << argv[i] << "\n";
      return false;
    }
  }
  return true;
}

}  // namespace mpc::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (!mpc::testing::ReadArguments(argc, argv) || !mpc::testing::OpenDriverStub()) return 2;
  return RUN_ALL_TESTS();
}
