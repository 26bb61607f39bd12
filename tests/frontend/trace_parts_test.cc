// The parts of a trace, each without the whole: the Cells that run, their calls, state, and what a step reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/cell_calls.h"
#include "frontend/graph/cell_stack.h"
#include "frontend/graph/step_report.h"
#include "frontend/graph/step_state.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/graph/traced_graph.h"

namespace mpc::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Inner : public nn::Cell {
 public:
  MPC_CELL(Inner, weight)
  Tensor Construct(Tensor x) { return x; }
  Parameter weight{{2}, Ones()};
};

class Outer : public nn::Cell {
 public:
  MPC_CELL(Outer, first)
  Tensor Construct(Tensor x) { return x; }
  Inner first;
};

Parameter NamedParameter(const std::string& name) {
  Parameter parameter({2}, Ones());
  parameter.set_name(name);
  return parameter;
}

// A step that is open, and its parts.
class TraceParts : public ::testing::Test {
 protected:
  TraceParts() { Begin("step", /*is_private=*/false); }

  void Begin(const std::string& name, bool is_private) {
    graph.BeginFunction(name, is_private);
    state.BeginFunction();
  }
  Tensor Value(double value) { return graph.Splat({DType::kF32, {2}}, value); }
  std::vector<std::string> ReportedNames() const {
    std::vector<compiler::NamedResult> results;
    report.AppendTo(results);
    std::vector<std::string> names;
    for (const compiler::NamedResult& result : results) names.emplace_back(result.name);
    return names;
  }
  std::string Error() { return std::string(graph.Finish().status().message()); }

  CellStack cells{std::vector<const nn::Cell*>()};
  TracedGraph graph{cells};
  StepState state{graph, cells, std::nullopt, {}};
  StepReport report{graph, {"norm"}};
  Parameter p = NamedParameter("p"), q = NamedParameter("q");
};

// ---- Cells ----------------------------------------------------------------------------------------------------------

TEST_F(TraceParts, ACellGivesItsPathUntilItIsLeft) {
  Outer outer;
  ASSERT_TRUE(cells.Enter(outer, 1).ok());
  EXPECT_EQ(cells.path(), "outer");
  ASSERT_TRUE(cells.Enter(outer.first, 2).ok());
  EXPECT_EQ(cells.path(), "outer/first");
  EXPECT_EQ(cells.call(), 2u);
  {
    const CellStack::FixedScope scope(cells, "optimizer");
    EXPECT_EQ(cells.path(), "optimizer");
    EXPECT_EQ(cells.innermost(), nullptr);
  }
  cells.Leave();
  EXPECT_EQ(cells.path(), "outer");
  EXPECT_EQ(cells.innermost(), &outer);
}

TEST_F(TraceParts, ACellThatItsCallerDoesNotRegisterNeedsAName) {
  Outer outer;
  Inner other;
  ASSERT_TRUE(cells.Enter(outer, 1).ok());
  EXPECT_THAT(std::string(cells.Enter(other, 2).message()), HasSubstr("outer: a Inner cell is called but not regis"));
}

TEST_F(TraceParts, ACallIsFoundByItsCellAndInputsUntilItIsReplaced) {
  Inner cell;
  const Tensor x = Value(1), y = Value(2);
  const auto request = [&](std::vector<Tensor> inputs) {
    return CallRequest{&cell, std::move(inputs), SettingsBelow(cell), cells.precision()};
  };
  CellCalls calls;
  const std::size_t call = calls.Begin(request({x}), 0, 0);
  const std::size_t inside = calls.Begin(request({y}), 0, 0);
  calls.End(inside, {y}, 0);
  EXPECT_FALSE(calls.Find(request({x})).at(0)->ended());
  calls.End(call, {y}, 0);
  ASSERT_EQ(calls.Find(request({x})).size(), 1u);
  EXPECT_EQ(calls.Find(request({x}))[0]->number, call);
  EXPECT_EQ(calls.Find(request({x}))[0]->last, inside);
  EXPECT_THAT(calls.Find(request({x, y})), ElementsAre());
  calls.Find(request({x}))[0]->replaced = true;
  EXPECT_THAT(calls.Find(request({x})), ElementsAre());
}

TEST_F(TraceParts, ACallUnderOtherSettingsIsAnotherOne) {
  Outer cell;
  const auto request = [&] { return CallRequest{&cell, {}, SettingsBelow(cell), cells.precision()}; };
  const CallRequest first = request();
  EXPECT_EQ(first, request());
  cell.first.SetTrain();
  EXPECT_FALSE(first == request()) << "a Cell below it trains";
  cell.first.SetTrain(false);
  EXPECT_EQ(first, request());
  cells.EnterPrecision({.level = "O2"});
  EXPECT_FALSE(first == request());
  cells.LeavePrecision();
  EXPECT_EQ(first, request());
  cell.first.ToFloat(DType::kF16);
  EXPECT_FALSE(first == request());
}

// ---- State ----------------------------------------------------------------------------------------------------------

TEST_F(TraceParts, AParameterIsOneArgumentAndReadsAsWhatWasAssigned) {
  const Tensor first = state.Read(p);
  EXPECT_TRUE(SameValue(first, state.Read(p)));
  const Tensor next = Value(3);
  state.Assign(p, next);
  EXPECT_TRUE(SameValue(state.Read(p), next));
  EXPECT_THAT(state.used(), ElementsAre(p));
  ASSERT_EQ(state.values().size(), 1u);
  EXPECT_TRUE(state.values()[0].assigned);
  ASSERT_EQ(state.values()[0].earlier.size(), 1u);
  EXPECT_TRUE(SameValue(state.values()[0].earlier[0], first));
  EXPECT_FALSE(graph.failed());
}

TEST_F(TraceParts, WhatOthersMayReadBecomesAValueOfItsOwnOnceItIsRead) {
  const Tensor first = state.Read(p);
  state.AssignShared(q, first);
  EXPECT_TRUE(SameValue(state.Use(q).current, first)) << "nothing is copied before it is read";
  const Tensor own = state.Read(q);
  EXPECT_FALSE(SameValue(own, first));
  EXPECT_TRUE(SameValue(own, state.Read(q)));
  EXPECT_EQ(state.Use(q).earlier.size(), 1u);
  state.AssignShared(q, first);
  state.AssignShared(q, Value(1));
  ASSERT_EQ(state.Use(q).earlier.size(), 2u) << "a value that nobody read through q is none of q's";
  EXPECT_TRUE(SameValue(state.Use(q).earlier[1], own));
  EXPECT_FALSE(graph.failed());
}

TEST_F(TraceParts, AUseHoldsUntilItsStateIsAssigned) {
  state.Read(p);
  const std::size_t after_p = state.num_uses();
  state.DeferUpdate("add", {q}, {Value(1)}, {});
  EXPECT_TRUE(state.UsesHold(0, state.num_uses()));
  state.Read(q);
  EXPECT_TRUE(state.UsesHold(0, after_p));
  EXPECT_FALSE(state.UsesHold(0, after_p + 1)) << "the read has made the update";
  state.Assign(p, Value(2));
  EXPECT_FALSE(state.UsesHold(0, after_p));
}

TEST_F(TraceParts, AnInnerFunctionCapturesStateOfTheStep) {
  Begin("inner", /*is_private=*/true);
  state.Read(p);
  EXPECT_EQ(graph.captures().size(), 1u);
  EXPECT_EQ(state.Use(p).current.node()->depth, 2u);
  EXPECT_EQ(state.Use(p, 1).current.node()->depth, 1u);
  graph.EndFunction({});
  EXPECT_TRUE(state.EndFunction().values.at(0).read);
  EXPECT_FALSE(state.Use(p).read) << "the step itself has not read it";
  EXPECT_THAT(state.used(), ElementsAre(p));
}

TEST_F(TraceParts, AnUpdateWaitsUntilItsStateIsRead) {
  state.DeferUpdate("add", {p}, {Value(1)}, {});
  state.DeferUpdate("add", {q}, {Value(1)}, {});
  EXPECT_EQ(state.deferred().size(), 2u);
  const Tensor value = state.Read(p);
  EXPECT_EQ(state.deferred().size(), 1u);
  EXPECT_TRUE(state.Use(p).assigned);
  ASSERT_EQ(state.Use(p).earlier.size(), 1u);
  EXPECT_FALSE(SameValue(value, state.Use(p).earlier[0])) << "the value that the update made is read";
  EXPECT_THAT(state.EmitDeferred(), ElementsAre());
  EXPECT_TRUE(state.Use(q).assigned);
  EXPECT_FALSE(graph.failed());
}

TEST_F(TraceParts, WhatACallDeferredIsDroppedWithIt) {
  for (std::size_t call : {1, 2, 3}) {
    state.Defer({.operands = {Value(0)}, .call = call, .tap = "call" + std::to_string(call)});
  }
  state.DropDeferred(2, 3);
  const std::vector<std::pair<std::string, Tensor>> taps = state.EmitDeferred();
  ASSERT_EQ(taps.size(), 1u);
  EXPECT_EQ(taps[0].first, "call1");
  EXPECT_TRUE(state.deferred().empty());
}

// ---- Records --------------------------------------------------------------------------------------------------------

TEST_F(TraceParts, RecordsComeBeforeTapsAndTakenNamesGetNumbers) {
  report.AddTap("x", Value(1));
  report.AddTap("x", Value(2));
  report.Record("loss", Value(3));
  report.Record("loss", Value(4));
  EXPECT_THAT(ReportedNames(), ElementsAre("loss", "x", "x#2"));
  EXPECT_TRUE(report.wants("norm"));
  EXPECT_FALSE(report.wants("loss"));
}

TEST_F(TraceParts, AFunctionThatIsDifferentiatedMakesNoRecord) {
  Begin("inner", /*is_private=*/true);
  report.Record("loss", Value(1));
  EXPECT_THAT(Error(), HasSubstr("the record 'loss' belongs into the step, not into a differentiated function"));
  EXPECT_THAT(ReportedNames(), ElementsAre());
}

TEST_F(TraceParts, LabelsAreKnownWhereTheyAreAnInputOfTheStep) {
  const Tensor input = graph.AddInput({DType::kI32, {2, 1}}, "labels");
  const Tensor reshaped = graph.Emit("reshape", {input}, {{"shape", Shape{2}}})[0];
  report.ExpectLabels(reshaped, 10, -1);
  report.ExpectLabels(graph.Splat({DType::kI32, {2}}, 1), 10);
  report.ExpectLabels(graph.AddInput({DType::kF32, {2}}, "x"), 10);
  ASSERT_EQ(report.labels().size(), 1u);
  EXPECT_EQ(report.labels()[0].input, 0u);
  EXPECT_EQ(report.labels()[0].classes, 10);
  EXPECT_EQ(report.labels()[0].ignored, -1);
}

}  // namespace
}  // namespace mpc::internal
