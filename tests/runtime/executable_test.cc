#include "runtime/executable.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "kernels/cpu/kernel.h"
#include "kernels/float16.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

const TensorSpec kVector{DType::kF32, {4}};
const TensorSpec kScalar{DType::kF32, {}};

const Device& Cpu() { return **GetDevice("cpu"); }

/// gradient = x + bias; momentum on weight and velocity, in place, where `apply` holds.
ProgramBuilder MomentumStep() {
  ProgramBuilder builder("train_step");
  const ValueId weight = builder.State("weight", kVector, true);
  const ValueId velocity = builder.State("velocity", kVector, true);
  const ValueId x = builder.Input("x", kVector);
  const ValueId apply = builder.Input("apply", {DType::kBool, {}});
  const std::vector<float> bias_values = {1, 1, 1, 1};
  const float rate_value = 0.5f;
  const ValueId bias = builder.Constant(kVector, bias_values.data());
  const ValueId rate = builder.Constant(kScalar, &rate_value);
  const ValueId gradient = builder.Temporary(kVector);
  builder.Call("add", {x, bias}, {gradient});
  builder.Call("momentum", {weight, velocity, gradient, rate, apply}, {weight, velocity}, {{"momentum", 0.5}});
  builder.Output("gradient", gradient);
  builder.Output("weight", weight);
  return builder;
}

TEST(GetDevice, CpuIsOneObject) {
  ASSERT_TRUE(GetDevice("cpu").ok());
  EXPECT_EQ(*GetDevice("cpu"), *GetDevice("cpu"));
  EXPECT_EQ(Cpu().name(), "cpu");
}

TEST(GetDevice, SaysWhatExists) {
  EXPECT_EQ(GetDevice("gpu").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(GetDevice("gpu").status().message(), "there is no device \"gpu\"; mpc has \"cpu\" and \"cuda\"");
  EXPECT_EQ(GetTarget("cpu", "sm_90").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Executable, RunsInstructionsAndUpdatesStateInPlace) {
  StateStore store;
  const auto weight = AddEntry(store, "weight", {1, 2, 3, 4});
  const auto velocity = AddEntry(store, "velocity", {2, 2, 2, 2});
  auto executable = Cpu().Load(MomentumStep().Build(), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<float> x = {0, 1, 2, 3};
  ASSERT_TRUE((*executable)->Run({BytesOf(x), BytesOf(std::vector<std::uint8_t>{1})}).ok());
  EXPECT_EQ(ValuesOf<float>((*executable)->output(0)), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(FloatsOf(*velocity), (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(FloatsOf(*weight), (std::vector<float>{0, 0.5, 1, 1.5}));
  EXPECT_EQ(ValuesOf<float>((*executable)->output(1)), FloatsOf(*weight));
  EXPECT_EQ((*executable)->nodes_per_step(), 0u) << "the CPU has no graphs";
}

TEST(Executable, AFalsePredicateLeavesStateUntouched) {
  StateStore store;
  const auto weight = AddEntry(store, "weight", {1, 2, 3, 4});
  const auto velocity = AddEntry(store, "velocity", {2, 2, 2, 2});
  auto executable = Cpu().Load(MomentumStep().Build(), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const std::vector<float> x = {0, 1, 2, 3};
  ASSERT_TRUE((*executable)->Run({BytesOf(x), BytesOf(std::vector<std::uint8_t>{0})}).ok());
  EXPECT_EQ(FloatsOf(*weight), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(FloatsOf(*velocity), (std::vector<float>{2, 2, 2, 2}));
}

/// Momentum on two weights of different sizes, each with its own predicate.
ProgramBuilder TwoUpdates() {
  ProgramBuilder builder("train_step");
  const float rate_value = 0.5f;
  const ValueId rate = builder.Constant(kScalar, &rate_value);
  for (const auto& [name, size] : {std::pair<std::string, std::int64_t>{"a", 3}, {"b", 2500}}) {
    const TensorSpec spec{DType::kF32, {size}};
    const ValueId weight = builder.State("weight." + name, spec, true);
    const ValueId velocity = builder.State("velocity." + name, spec, true);
    const ValueId gradient = builder.Input("gradient." + name, spec);
    const ValueId apply = builder.Input("apply." + name, {DType::kBool, {}});
    builder.Call("momentum", {weight, velocity, gradient, rate, apply}, {weight, velocity}, {{"momentum", 0.5}});
  }
  return builder;
}

TEST(Executable, RunsUpdatesThatAgreeAsOneCall) {
  for (const std::uint8_t applies : {0, 1}) {
    StateStore store;
    const auto a = AddEntry(store, "weight.a", {1, 2, 3});
    const auto b = AddEntry(store, "weight.b", std::vector<float>(2500, 4));
    AddEntry(store, "velocity.a", {2, 2, 2});
    AddEntry(store, "velocity.b", std::vector<float>(2500, 2));
    auto executable = Cpu().Load(TwoUpdates().Build(), store);
    ASSERT_TRUE(executable.ok()) << executable.status();
    const std::vector<float> of_a = {1, 3, 5}, of_b(2500, 3);
    const std::vector<std::uint8_t> yes = {1}, second = {applies};
    const auto times = (*executable)->RunTimed({BytesOf(of_a), BytesOf(yes), BytesOf(of_b), BytesOf(second)});
    ASSERT_TRUE(times.ok()) << times.status();
    ASSERT_EQ(times->size(), 1u);
    EXPECT_EQ((*times)[0].instruction, 0u) << "the time of a group is its first instruction's";
    EXPECT_EQ(FloatsOf(*a), (std::vector<float>{0, 0, 0}));
    EXPECT_EQ(FloatsOf(*b), std::vector<float>(2500, applies != 0 ? 2.0f : 4.0f)) << "its own predicate";
  }
}

TEST(Executable, TwoProgramsShareOneState) {
  StateStore store;
  AddEntry(store, "weight", {1, 2, 3, 4});
  AddEntry(store, "velocity", {0, 0, 0, 0});
  ProgramBuilder reader("predict");
  const ValueId read = reader.State("weight", kVector, false);
  const ValueId y = reader.Temporary(kVector);
  reader.Call("neg", {read}, {y});
  reader.Output("y", y);
  auto train = Cpu().Load(MomentumStep().Build(), store);
  auto predict = Cpu().Load(reader.Build(), store);
  ASSERT_TRUE(train.ok() && predict.ok());
  const std::vector<float> x = {0, 1, 2, 3};
  ASSERT_TRUE((*train)->Run({BytesOf(x), BytesOf(std::vector<std::uint8_t>{1})}).ok());
  ASSERT_TRUE((*predict)->Run({}).ok());
  EXPECT_EQ(ValuesOf<float>((*predict)->output(0)), (std::vector<float>{-0.5, -1, -1.5, -2}));
}

TEST(Executable, CopiesStateThatCouldNotBeUpdatedInPlace) {
  StateStore store;
  const auto weight = AddEntry(store, "weight", {1, 2, 3, 4});
  ProgramBuilder builder("step");
  const ValueId state = builder.State("weight", kVector, true);
  const ValueId updated = builder.Temporary(kVector);
  builder.Call("neg", {state}, {updated});
  builder.program.step().copies.push_back({updated, state, "test"});
  auto executable = Cpu().Load(builder.Build(), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_TRUE((*executable)->Run({}).ok());
  EXPECT_EQ(FloatsOf(*weight), (std::vector<float>{-1, -2, -3, -4}));
}

TEST(Executable, InitialisesEntriesThatItWritesBeforeReading) {
  StateStore store;
  const auto weight = std::make_shared<StateEntry>("weight", Role::kParameter, kVector);
  ASSERT_TRUE(store.Add(weight).ok());
  ProgramBuilder builder("init_state");
  const std::vector<float> values = {1, 2, 3, 4};
  const ValueId constant = builder.Constant(kVector, values.data());
  builder.Call("neg", {constant}, {builder.State("weight", kVector, true)});
  auto executable = Cpu().Load(builder.Build(), store);
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_FALSE(weight->initialised());
  ASSERT_TRUE((*executable)->Run({}).ok());
  EXPECT_TRUE(weight->initialised());
  EXPECT_EQ(FloatsOf(*weight), (std::vector<float>{-1, -2, -3, -4}));
}

TEST(Executable, HoldsItsStateAlive) {
  auto store = std::make_unique<StateStore>();
  AddEntry(*store, "weight", {1, 2, 3, 4});
  AddEntry(*store, "velocity", {2, 2, 2, 2});
  auto executable = Cpu().Load(MomentumStep().Build(), *store);
  ASSERT_TRUE(executable.ok());
  store.reset();
  const std::vector<float> x = {0, 1, 2, 3};
  EXPECT_TRUE((*executable)->Run({BytesOf(x), BytesOf(std::vector<std::uint8_t>{1})}).ok());
}

/// What a shadow holds, widened.
std::vector<float> LowFloatsOf(const StateEntry& entry) {
  std::vector<float> values;
  for (Half value : ValuesOf<Half>({static_cast<const std::uint8_t*>(entry.data()), entry.spec().bytes()})) {
    values.push_back(static_cast<float>(value));
  }
  return values;
}

std::shared_ptr<StateEntry> AddLowCopy(StateStore& store) {
  auto shadow = std::make_shared<StateEntry>("weight.f16", Role::kDerived, TensorSpec{DType::kF16, {4}});
  return store.Add(shadow).ok() ? shadow : nullptr;
}

/// y = -shadow, the shadow of `weight` read only.
ProgramBuilder LowCopyReader() {
  ProgramBuilder builder("predict");
  const ValueId shadow = builder.Derived(builder.State("weight", kVector, false), DType::kF16, false);
  const ValueId y = builder.Temporary({DType::kF16, {4}});
  builder.Call("neg", {shadow}, {y});
  builder.Output("y", y);
  return builder;
}

/// Momentum with rate 1 that writes weight, velocity and the weight's shadow.
ProgramBuilder LowCopyWriter() {
  ProgramBuilder builder("train_step");
  const ValueId weight = builder.State("weight", kVector, true);
  const ValueId velocity = builder.State("velocity", kVector, true);
  const ValueId shadow = builder.Derived(weight, DType::kF16, true);
  const ValueId gradient = builder.Input("gradient", kVector);
  const float rate_value = 1;
  const ValueId rate = builder.Constant(kScalar, &rate_value);
  builder.Call("momentum", {weight, velocity, gradient, rate}, {weight, velocity, shadow},
               {{"momentum", 0.5}, {"shadow", std::string("f16")}});
  return builder;
}

TEST(DerivedState, IsRebuiltBeforeTheFirstStepAndAfterEveryWriteByTheHost) {
  StateStore store;
  const auto weight = AddEntry(store, "weight", {1, 2, 3, 4});
  const auto shadow = AddLowCopy(store);
  auto predict = Cpu().Load(LowCopyReader().Build(), store);
  ASSERT_TRUE(predict.ok()) << predict.status();
  EXPECT_FALSE(shadow->initialised());
  ASSERT_TRUE((*predict)->Run({}).ok());
  EXPECT_EQ(LowFloatsOf(*shadow), FloatsOf(*weight));
  ASSERT_TRUE(weight->Write(BytesOf(std::vector<float>{5, 6, 7, 8})).ok());
  ASSERT_TRUE((*predict)->Run({}).ok());
  EXPECT_EQ(LowFloatsOf(*shadow), (std::vector<float>{5, 6, 7, 8}));
}

TEST(DerivedState, IsLeftAloneWhileItsSourceStands) {
  StateStore store;
  AddEntry(store, "weight", {1, 2, 3, 4});
  const auto shadow = AddLowCopy(store);
  auto predict = Cpu().Load(LowCopyReader().Build(), store);
  ASSERT_TRUE((*predict)->Run({}).ok());
  const std::uint64_t version = shadow->version();
  ASSERT_TRUE((*predict)->Run({}).ok());
  EXPECT_EQ(shadow->version(), version) << "nothing was stale";
}

TEST(DerivedState, WhatAStepWritesBesideItsSourceIsNotRebuilt) {
  StateStore store;
  const auto weight = AddEntry(store, "weight", {1, 2, 3, 4});
  AddEntry(store, "velocity", {0, 0, 0, 0});
  const auto shadow = AddLowCopy(store);
  auto train = Cpu().Load(LowCopyWriter().Build(), store);
  auto predict = Cpu().Load(LowCopyReader().Build(), store);
  ASSERT_TRUE(train.ok() && predict.ok()) << train.status() << predict.status();
  ASSERT_TRUE((*train)->Run({BytesOf(std::vector<float>{1, 1, 1, 1})}).ok());
  EXPECT_EQ(FloatsOf(*weight), (std::vector<float>{0, 1, 2, 3}));
  EXPECT_EQ(LowFloatsOf(*shadow), FloatsOf(*weight));
  const std::uint64_t version = shadow->version();
  ASSERT_TRUE((*predict)->Run({}).ok());
  EXPECT_EQ(shadow->version(), version);
}

TEST(DerivedState, FollowsAnotherProgramThatWritesTheSourceAlone) {
  StateStore store;
  const auto weight = AddEntry(store, "weight", {1, 2, 3, 4});
  AddEntry(store, "velocity", {0, 0, 0, 0});
  const auto shadow = AddLowCopy(store);
  auto train = Cpu().Load(MomentumStep().Build(), store);
  auto predict = Cpu().Load(LowCopyReader().Build(), store);
  ASSERT_TRUE((*predict)->Run({}).ok());
  ASSERT_TRUE((*train)->Run({BytesOf(std::vector<float>{1, 1, 1, 1}), BytesOf(std::vector<std::uint8_t>{1})}).ok());
  EXPECT_FALSE(shadow->Follows(*weight));
  ASSERT_TRUE((*predict)->Run({}).ok());
  EXPECT_EQ(LowFloatsOf(*shadow), FloatsOf(*weight));
}

TEST(DerivedState, DoesNotMistakeAnotherEntryForItsSource) {
  StateStore first, second;
  AddEntry(first, "weight", {1, 2, 3, 4});
  const auto replaced = AddEntry(second, "weight", {5, 6, 7, 8});
  const auto shadow = AddLowCopy(first);
  ASSERT_TRUE(second.Add(shadow).ok());
  auto before = Cpu().Load(LowCopyReader().Build(), first);
  auto after = Cpu().Load(LowCopyReader().Build(), second);
  ASSERT_TRUE((*before)->Run({}).ok());
  ASSERT_TRUE((*after)->Run({}).ok());
  EXPECT_EQ(LowFloatsOf(*shadow), FloatsOf(*replaced));
}

TEST(Binding, ListsMissingMisshapenAndUninitialisedEntries) {
  StateStore store;
  ProgramBuilder builder("train_step");
  const ValueId a = builder.State("a", kVector, false);
  const ValueId b = builder.State("b", kVector, false);
  const ValueId c = builder.State("c", kVector, false);
  const ValueId y = builder.Temporary(kVector);
  builder.Call("add", {a, b}, {y});
  builder.Call("add", {b, c}, {y});
  AddEntry(store, "b", {1, 2, 3});
  ASSERT_TRUE(store.Add(std::make_shared<StateEntry>("c", Role::kParameter, kVector)).ok());
  const absl::Status status = Cpu().Load(builder.Build(), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(),
            "program \"train_step\" cannot be bound to this state:\n"
            "  \"a\" (parameter, tensor<4xf32>) is missing\n"
            "  \"b\" is tensor<3xf32>, expected tensor<4xf32>\n"
            "  \"c\" is read but was never initialised");
  AddEntry(store, "a", {1, 2, 3, 4});
  EXPECT_EQ(Cpu().Load(builder.Build(), store).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Loading, RefusesOtherDevicesFeaturesAndKernels) {
  StateStore store;
  ProgramBuilder builder("step");
  const ValueId x = builder.Input("x", kVector);
  const ValueId y = builder.Temporary(kVector);
  builder.Call("neg", {x}, {y});
  ASSERT_TRUE(Cpu().Load(builder.Build(), store).ok());

  ProgramBuilder other = builder;
  other.program.device = "cuda";
  EXPECT_EQ(Cpu().Load(other.Build(), store).status().code(), absl::StatusCode::kInvalidArgument);

  other = builder;
  other.program.required_cpu_features = {"avx2", "quantum"};
  const absl::Status feature = Cpu().Load(other.Build(), store).status();
  EXPECT_EQ(feature.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(feature.message().find("lacks: quantum"), absl::string_view::npos) << feature;

  other = builder;
  other.program.step().instructions[0].kernel = "no_such_kernel";
  const absl::Status kernel = Cpu().Load(other.Build(), store).status();
  EXPECT_EQ(kernel.code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(kernel.message().find("step, instruction 0 (no_such_kernel in test)"), absl::string_view::npos) << kernel;

  other = builder;
  other.program.arena_bytes = std::size_t{1} << 47;
  EXPECT_EQ(Cpu().Load(other.Build(), store).status().code(), absl::StatusCode::kResourceExhausted);
}

/// y and the gradient of the weight of a convolution, planned for the threads of now.
ProgramBuilder ConvolutionStep(bool packed) {
  const TensorSpec image{DType::kF32, {4, 12, 12, 24}}, weights{DType::kF32, {24, 24, 3, 3}};
  const Attributes same{{"pad_mode", std::string("same")}, {"data_format", std::string("NHWC")}};
  Attributes gradient = same;
  gradient.Set("weight_shape", std::vector<std::int64_t>(weights.shape));
  ProgramBuilder builder("step");
  const ValueId x = builder.Input("x", image);
  const ValueId weight = builder.Input("weight", weights);
  const ValueId y = builder.Temporary(image);
  const ValueId dweight = builder.Temporary(weights);
  if (packed) {
    builder.CallPacked("conv2d", {x, weight}, {y}, same, Cpu());
  } else {
    builder.Call("conv2d", {x, weight}, {y}, same, &Cpu());
  }
  builder.Call("conv2d_grad_weight", {x, y}, {dweight}, gradient, &Cpu());
  builder.Output("y", y);
  builder.Output("dweight", dweight);
  return builder;
}

/// Both results of one step, and the arena that it needed.
std::pair<std::vector<std::vector<float>>, std::size_t> RunOnce(const ProgramBuilder& builder) {
  auto executable = Cpu().Load(builder.Build(), StateStore());
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return {};
  std::vector<float> x(4 * 12 * 12 * 24), weight(24 * 24 * 3 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 11) - 5;
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i % 7) * 0.125f;
  EXPECT_TRUE((*executable)->Run({BytesOf(x), BytesOf(weight)}).ok());
  return {{ValuesOf<float>((*executable)->output(0)), ValuesOf<float>((*executable)->output(1))},
          (*executable)->memory().arena};
}

TEST(Loading, TakesAnyNumberOfThreads) {
  const int threads = cpu::NumThreads();
  for (const bool packed : {false, true}) {
    std::vector<std::vector<float>> expected;
    for (const int planned : {1, 2}) {
      cpu::SetNumThreads(planned);
      const ProgramBuilder builder = ConvolutionStep(packed);
      for (const int running : {1, 2, 3, 7}) {
        SCOPED_TRACE(::testing::Message() << "planned for " << planned << " threads, run with " << running);
        cpu::SetNumThreads(running);
        const auto [results, arena] = RunOnce(builder);
        if (expected.empty()) expected = results;
        EXPECT_EQ(results, expected) << "any count, equal bits";
        EXPECT_EQ(arena, builder.program.arena_bytes) << "scratch follows from shapes";
      }
    }
  }
  cpu::SetNumThreads(threads);
}

std::ptrdiff_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
}

// OpenMP starts a team for each thread that has a parallel region.
TEST(Steps, StartNoThreadsOfTheLibrary) {
  const int threads = cpu::NumThreads();
  cpu::SetNumThreads(1);
  std::thread([] {
    const std::ptrdiff_t before = ThreadsOfThisProcess();
    RunOnce(ConvolutionStep(false));
    EXPECT_EQ(ThreadsOfThisProcess(), before);
  }).join();
  cpu::SetNumThreads(threads);
}

TEST(Loading, GivesAKernelTheWorkspaceThatItNeeds) {
  ProgramBuilder builder("step");
  const TensorSpec low{DType::kF16, {2, 2}};
  const ValueId a = builder.Input("a", low);
  const ValueId product = builder.Temporary(low);
  builder.Call("matmul", {a, a}, {product});  // planned without
  builder.Output("product", product);
  const auto executable = Cpu().Load(builder.Build(), StateStore());
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_GT((*executable)->memory().arena, builder.program.arena_bytes);
  const std::vector<Half> values = {Half(1), Half(2), Half(3), Half(4)};
  ASSERT_TRUE((*executable)->Run({BytesOf(values)}).ok());
  std::vector<float> result;
  for (const Half value : ValuesOf<Half>((*executable)->output(0))) result.push_back(static_cast<float>(value));
  EXPECT_EQ(result, (std::vector<float>{7, 10, 15, 22}));
}

TEST(Loading, FillsConstantsOfOneElement) {
  StateStore store;
  ProgramBuilder builder("step");
  const TensorSpec spec{DType::kF32, {100}};
  const ValueId x = builder.Input("x", spec);
  const std::vector<float> given(100, 3);
  std::vector<ValueId> constants = {builder.Constant(spec, given.data())};
  for (const float element : {0.0f, -0.5f}) constants.push_back(builder.Filled(spec, element));
  for (const ValueId constant : constants) {
    const ValueId sum = builder.Temporary(spec);
    builder.Call("add", {x, constant}, {sum});
    builder.Output("sum", sum);
  }
  auto loaded = Cpu().Load(builder.Build(), store);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->memory().other, 3u * 448);
  const std::vector<float> ones(100, 1);
  const absl::Span<const std::uint8_t> inputs[] = {BytesOf(ones)};
  ASSERT_TRUE((*loaded)->Run(inputs).ok());
  EXPECT_EQ(ValuesOf<float>((*loaded)->output(0)), std::vector<float>(100, 4));
  EXPECT_EQ(ValuesOf<float>((*loaded)->output(1)), std::vector<float>(100, 1));
  EXPECT_EQ(ValuesOf<float>((*loaded)->output(2)), std::vector<float>(100, 0.5));

  builder.program.fills.back().bytes = std::size_t{1} << 47;
  EXPECT_EQ(Cpu().Load(builder.Build(), store).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(Loading, RefusesAnOutputOverAnInputThatIsStillRead) {
  StateStore store;
  ProgramBuilder builder("step");
  const TensorSpec matrix{DType::kF32, {4, 4}};
  const ValueId x = builder.Input("x", matrix);
  const ValueId y = builder.Temporary(matrix);
  builder.Call("matmul", {x, x}, {y}, {}, &Cpu());
  builder.program.values[y].offset = builder.program.values[x].offset;
  const absl::Status status = Cpu().Load(builder.Build(), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("output 0 overwrites input 0"), absl::string_view::npos) << status;

  builder.program.step().instructions[0].kernel = "neg";
  builder.program.step().instructions[0].inputs = {x};
  EXPECT_TRUE(Cpu().Load(builder.Build(), store).ok());
}

TEST(Loading, RefusesOutputsThatOverlap) {
  StateStore store;
  AddEntry(store, "weight", {1, 2, 3, 4});
  AddEntry(store, "velocity", {2, 2, 2, 2});
  ProgramBuilder builder = MomentumStep();
  std::vector<ValueId>& outputs = builder.program.step().instructions[1].outputs;
  outputs[1] = outputs[0];
  const absl::Status status = Cpu().Load(builder.Build(), store).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST(Running, RefusesAWrongNumberOrSizeOfInputs) {
  StateStore store;
  AddEntry(store, "weight", {1, 2, 3, 4});
  AddEntry(store, "velocity", {2, 2, 2, 2});
  auto executable = Cpu().Load(MomentumStep().Build(), store);
  ASSERT_TRUE(executable.ok());
  const std::vector<float> x = {0, 1, 2};
  const absl::Status size = (*executable)->Run({BytesOf(x), BytesOf(std::vector<std::uint8_t>{1})});
  EXPECT_EQ(size.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(size.message(),
            "program \"train_step\" takes 2 inputs [\"x\" tensor<4xf32> (16 bytes), \"apply\" tensor<i1> (1 bytes)], "
            "got 2 [12 bytes, 1 bytes]");
  EXPECT_EQ((*executable)->Run({BytesOf(x)}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mpc::runtime
