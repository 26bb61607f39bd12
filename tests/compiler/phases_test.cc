// What operations of a step are there for: what their kind says, what their neighbours say, and that each says
// something.
#include "compiler/analysis/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "kernels/collective.h"
#include "tests/compiler/op_case_module.h"
#include "tests/op_cases/op_case.h"

namespace mpc {
namespace {

/// Calls `visit` with an instance of each operation that has a case, which is each that has a kernel.
template <typename Visitor>
void ForEachOperation(Visitor&& visit) {
  const auto context = MakeContext();
  std::set<std::string> seen;
  for (const op_cases::OpCase& op_case : op_cases::AllOpCases()) {
    if (!seen.insert(op_case.op).second) continue;
    auto module = ForwardModule(*context, op_case, DType::kF32);
    bool is_there = false;
    module->walk([&](mlir::Operation* op) {
      if (op->getName().stripDialect() != op_case.op) return;
      is_there = true;
      visit(op, op_case.op);
    });
    EXPECT_TRUE(is_there) << op_case.op;
  }
}

bool IsAssigned(mlir::Operation* op) {
  auto amp = mlir::dyn_cast<AmpOpInterface>(op);
  return amp && amp.getAmpClass() != AmpClass::Exempt;
}

TEST(OwnPhase, OfStateUpdatesIsUpdate) {
  ForEachOperation([](mlir::Operation* op, const std::string& name) {
    if (op->hasTrait<StateUpdate>()) {
      EXPECT_EQ(ownPhase(op), Phase::kUpdate) << name;
    }
  });
}

// What AMP assigns a precision, and its gradients, is of the network.
TEST(OwnPhase, OfTheNetworkIsNone) {
  ForEachOperation([](mlir::Operation* op, const std::string& name) {
    if (IsAssigned(op) || has<Property::GradientOp>(op)) {
      EXPECT_EQ(ownPhase(op), std::nullopt) << name;
    }
  });
}

// AMP leaves alone what belongs to the step. Each has a phase, but for what the network has of the kind.
TEST(OwnPhase, IsKnownOfEveryOtherOperation) {
  const std::set<std::string> of_the_network = {
      "constant",          "iota",       "random",        "cast",           "conv2d_statistics", "batch_norm_apply",
      "tensor_statistics", "all_gather", "all_reduce",    "all_reduce_max", "process_rank",      "int_add",
      "int_sub",           "int_mul",    "int_floor_div", "int_maximum",    "int_neg",           "int_minimum",
      "int_abs",           "int_mod"};
  ForEachOperation([&](mlir::Operation* op, const std::string& name) {
    if (!mlir::isa<AmpOpInterface>(op) || IsAssigned(op) || has<Property::GradientOp>(op)) return;
    EXPECT_EQ(!ownPhase(op), of_the_network.count(name) == 1)
        << name << ": is it for the network, or what is it for? See Mpc_InPhase in mpc_properties.td";
  });
}

// Kernels cannot ask the dialect: their list of collectives is held to its property.
TEST(Collectives, AreThoseOfTheKernels) {
  ForEachOperation([](mlir::Operation* op, const std::string& name) {
    EXPECT_EQ(has<Property::Collective>(op), IsCollective(name)) << name;
  });
}

/// The phases of @step of `text`, by the names of its operations.
std::map<std::string, Phase> PhasesOf(const std::string& text) {
  const auto context = MakeContext();
  auto module = ParseModule(*context, text);
  EXPECT_TRUE(module);
  const auto step = module->lookupSymbol<mlir::func::FuncOp>("step");
  const StepPhases phases(step);
  std::map<std::string, Phase> found;
  for (mlir::Operation& op : mlir::func::FuncOp(step).getBody().front().without_terminator()) {
    found[op.getName().stripDialect().str()] = phases.phaseOf(&op);
  }
  return found;
}

TEST(StepPhases, FollowFromWhatReadsAnOperation) {
  const std::map<std::string, Phase> phases = PhasesOf(R"(
func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v", of = "w">}, %x: tensor<4xf32>, %rate: tensor<f32>,
                %ok: tensor<i1>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<4xf32>) attributes {mpc.step} {
  %y = mpc.tanh %x {mpc.scope = #mpc.scope<"net", network>} : (tensor<4xf32>) -> tensor<4xf32>
  %z = mpc.exp %y : (tensor<4xf32>) -> tensor<4xf32>
  %g = mpc.mul %z, %w {mpc.backward} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %h = mpc.cast %g : (tensor<4xf32>) -> tensor<4xf16>
  %slower = mpc.neg %rate : (tensor<f32>) -> tensor<f32>
  %w1, %v1 = mpc.momentum %w, %v, %h, %slower
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %v2 = mpc.abs %v1 : (tensor<4xf32>) -> tensor<4xf32>
  %w2 = mpc.select %ok, %w1, %w : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %w2, %v2, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
})");
  EXPECT_EQ(phases, (std::map<std::string, Phase>{{"tanh", Phase::kForward},
                                                  {"exp", Phase::kForward},
                                                  {"mul", Phase::kBackward},
                                                  {"cast", Phase::kBackward},
                                                  {"neg", Phase::kUpdate},
                                                  {"momentum", Phase::kUpdate},
                                                  {"abs", Phase::kUpdate},
                                                  {"select", Phase::kSkip}}));
}

// An optimizer of several operations, whose new state is kept where the step is finite, and what records show of it.
TEST(StepPhases, OfAComposedOptimizerIsUpdate) {
  const std::map<std::string, Phase> phases = PhasesOf(R"(
func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, %x: tensor<4xf32>, %rate: tensor<f32>,
                %scale: tensor<f32>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<f32>, tensor<f32>, tensor<f32>)
    attributes {mpc.step} {
  %loss = mpc.reduce_sum %x {axes = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.sin %x {mpc.backward} : (tensor<4xf32>) -> tensor<4xf32>
  %clamped = mpc.clamp %g {minimum = -1.0 : f32, maximum = 1.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %clamped
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %wave = mpc.cos %g : (tensor<4xf32>) -> tensor<4xf32>
  %plain = mpc.unscale %wave, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %code = mpc.cast %bad {user = true} : (tensor<i32>) -> tensor<f32>
  %norm = mpc.global_norm %clamped, %plain : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %shown = mpc.exp %norm : (tensor<f32>) -> tensor<f32>
  %slower = mpc.neg %rate : (tensor<f32>) -> tensor<f32>
  %d = mpc.mul %clamped, %slower : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %new = mpc.add %w, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %w1 = mpc.select %finite, %new, %w : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %w1, %slower, %shown, %code : tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>
})");
  EXPECT_EQ(phases, (std::map<std::string, Phase>{{"reduce_sum", Phase::kForward},
                                                  {"sin", Phase::kBackward},
                                                  {"all_finite", Phase::kCheck},
                                                  {"cos", Phase::kUpdate},
                                                  {"unscale", Phase::kUnscale},
                                                  {"cast", Phase::kUpdate},
                                                  {"clamp", Phase::kUpdate},
                                                  {"global_norm", Phase::kClip},
                                                  {"exp", Phase::kUpdate},
                                                  {"neg", Phase::kUpdate},
                                                  {"mul", Phase::kUpdate},
                                                  {"add", Phase::kUpdate},
                                                  {"select", Phase::kSkip}}));
}

// IR that was written by hand has no marks.
TEST(StepPhases, OfAGradientOperationIsBackward) {
  const std::map<std::string, Phase> phases = PhasesOf(R"(
func.func @step(%x: tensor<4xf32>, %dy: tensor<4xf32>) -> tensor<4xf32> {
  %dx = mpc.relu_grad %x, %dy : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
})");
  EXPECT_EQ(phases.at("relu_grad"), Phase::kBackward);
}

// A guarded update reads what is around it from inside.
TEST(StepPhases, SeeReadersInTheBodiesOfGuardedUpdates) {
  const std::map<std::string, Phase> phases = PhasesOf(R"(
func.func @step(%ok: tensor<i1>, %w: tensor<4xf32>) {
  %n = mpc.neg %w : (tensor<4xf32>) -> tensor<4xf32>
  %u = mpc.guarded_update %ok else(%w) {
    mpc.yield %n : tensor<4xf32>
  } : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return
})");
  EXPECT_EQ(phases.at("neg"), Phase::kUpdate);
  EXPECT_EQ(phases.at("guarded_update"), Phase::kUpdate);
}

/// The phase of a region of `body`, whose results leave the step.
Phase PhaseOfRegion(const std::string& body) {
  return PhasesOf(R"(
func.func @step(%g: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  %y = mpc.fusion(%g, %s) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<f32>):
)" + body + R"(
    mpc.yield %1 : tensor<4xf32>
  } : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
})")["fusion"];
}

TEST(StepPhases, OfARegionIsThatOfWhatItHolds) {
  const std::string unscale = "%1 = mpc.unscale %0, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n";
  EXPECT_EQ(PhaseOfRegion("%0 = mpc.neg %a : (tensor<4xf32>) -> tensor<4xf32>\n" + unscale), Phase::kForward);
  EXPECT_EQ(PhaseOfRegion("%0 = mpc.neg %a {mpc.backward} : (tensor<4xf32>) -> tensor<4xf32>\n" + unscale),
            Phase::kBackward);
  EXPECT_EQ(PhaseOfRegion("%0 = mpc.unscale %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n" + unscale),
            Phase::kUnscale);
  const std::string clip =
      "%1 = mpc.clip_by_norm %0, %b {max_norm = 1.0 : f32} "
      ": (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n";
  EXPECT_EQ(PhaseOfRegion("%0 = mpc.unscale %a, %b : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>\n" + clip),
            Phase::kUnscale);
}

}  // namespace
}  // namespace mpc
