#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

enum class Guard { kAbsent, kFalse, kTrue };
enum class Masters { kOnly, kAndWithout };

struct Variant {
  std::string name;
  Attributes attributes;
  double step = 0;
};

Variant Unscaled() { return {"unscaled", {{"unscale", true}}, 5}; }
Variant Clipped() { return {"clipped", {{"max_norm", 1.5}, {"weight_decay", 0.1}}, 5}; }
Variant UnscaledAndClipped() {
  return {"unscaled_and_clipped", {{"unscale", true}, {"max_norm", 1.5}, {"weight_decay", 0.1}}, 5};
}

// The scale and the norm that the attributes ask for: no powers of two, so that products round. A norm is f64; without
// a scale it is f32, as in Programs that were made before norms were f64.
void AddScaling(OpCase& op_case) {
  const bool unscales = op_case.attributes.GetBool("unscale");
  if (unscales) op_case.operands.push_back({F32({}), List({0.3})});
  if (op_case.attributes.GetDouble("max_norm") > 0) {
    op_case.operands.push_back({TensorSpec{unscales ? DType::kF64 : DType::kF32, {}}, List({7.1})});
  }
}

// Adds `op_case` with each form of its predicate; in f16 and bf16 with a low gradient only (f32 masters), and with
// parameter and gradient low (no masters).
void AddGuardedForms(std::vector<OpCase>& cases, const OpCase& base, std::size_t slots, std::size_t gradient,
                     Masters which) {
  for (Guard guard : {Guard::kAbsent, Guard::kFalse, Guard::kTrue}) {
    for (bool masters : {true, false}) {
      if (!masters && which == Masters::kOnly) continue;
      OpCase op_case = base;
      if (guard != Guard::kAbsent) {
        op_case.operands.push_back({Bool({}), List({guard == Guard::kTrue ? 1.0 : 0.0})});
        op_case.name += guard == Guard::kTrue ? "_taken" : "_skipped";
      }
      op_case.name += masters ? "" : "_no_masters";
      for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
        const bool low = i == gradient || (i == 0 && !masters);
        if (!low) op_case.f32_operands.push_back(i);
      }
      for (std::size_t i = masters ? 0 : 1; i <= slots; ++i) op_case.f32_results.push_back(i);
      cases.push_back(std::move(op_case));
    }
  }
}

// The forms of a case, and those that also write a shadow: only masters have one.
void AddForms(std::vector<OpCase>& cases, OpCase base, std::size_t slots, std::size_t gradient) {
  AddScaling(base);
  AddGuardedForms(cases, base, slots, gradient, Masters::kAndWithout);
  for (DType low : {DType::kF16, DType::kBF16}) {
    OpCase shadowed = base;
    const std::string name(DTypeName(low));
    shadowed.name += "_shadow_" + name;
    shadowed.attributes.Set("shadow", name);
    shadowed.results.push_back({low, base.results[0].shape});
    AddGuardedForms(cases, shadowed, slots, gradient, Masters::kOnly);
  }
}

const std::vector<Shape>& ParameterShapes() {
  static const auto* const shapes = new std::vector<Shape>{{1}, {7}, {3, 5, 2, 2}, {4099}};
  return *shapes;
}

OperandCase LearningRate() { return {F32({}), List({0.01})}; }

void AddSgd(std::vector<OpCase>& cases) {
  const std::vector<Variant> variants = {
      {"plain", {}},
      {"plain_decay", {{"weight_decay", 0.1}}, 3},
      {"momentum_first_step", {{"momentum", 0.9}, {"dampening", 0.5}}, 0},
      {"momentum", {{"momentum", 0.9}, {"dampening", 0.25}, {"weight_decay", 0.01}}, 1},
      {"nesterov", {{"momentum", 0.9}, {"nesterov", true}, {"loss_scale", 128.0}}, 7},
      UnscaledAndClipped(),
  };
  for (const Variant& variant : variants) {
    for (const Shape& shape : ParameterShapes()) {
      AddForms(cases,
               {absl::StrCat("sgd/", variant.name, "_", ShapeToString(shape)),
                "sgd",
                variant.attributes,
                {Fixed(shape), Fixed(shape), Fixed(shape), LearningRate(), {I32({}), List({variant.step})}},
                {F32(shape), F32(shape)}},
               1, 2);
    }
  }
}

void AddMomentum(std::vector<OpCase>& cases) {
  const std::vector<Variant> variants = {
      {"plain", {}},
      {"decay", {{"momentum", 0.8}, {"weight_decay", 0.1}, {"loss_scale", 128.0}}},
      {"nesterov", {{"nesterov", true}, {"weight_decay", 0.01}}},
      Unscaled(),
      Clipped(),
      UnscaledAndClipped(),
  };
  for (const Variant& variant : variants) {
    for (const Shape& shape : ParameterShapes()) {
      AddForms(cases,
               {absl::StrCat("momentum/", variant.name, "_", ShapeToString(shape)),
                "momentum",
                variant.attributes,
                {Fixed(shape), Fixed(shape), Fixed(shape), LearningRate()},
                {F32(shape), F32(shape)}},
               1, 2);
    }
  }
}

// Rules that take moments, a learning rate and a step.
void AddCorrected(std::vector<OpCase>& cases, const std::string& op, const std::vector<Variant>& variants,
                  const Values& parameter = Normal()) {
  for (const Variant& variant : variants) {
    for (const Shape& shape : ParameterShapes()) {
      AddForms(cases,
               {absl::StrCat(op, "/", variant.name, "_", ShapeToString(shape)),
                op,
                variant.attributes,
                {Fixed(shape, parameter),
                 Fixed(shape),
                 Fixed(shape, Uniform(0.01, 1)),
                 Fixed(shape),
                 LearningRate(),
                 {I32({}), List({variant.step})}},
                {F32(shape), F32(shape), F32(shape)}},
               2, 3);
    }
  }
}

void AddAdams(std::vector<OpCase>& cases) {
  const std::vector<Variant> variants = {
      {"first_step", {}, 0},
      {"later_step", {{"weight_decay", 0.1}, {"loss_scale", 128.0}}, 99},
      {"other_betas", {{"beta1", 0.5}, {"beta2", 0.9}, {"epsilon", 1e-3}}, 3},
      UnscaledAndClipped(),
  };
  AddCorrected(cases, "adam", variants);
  AddCorrected(cases, "adamw", variants);
  AddCorrected(cases, "lamb", variants);
  // A trust ratio that meets its limit, and one that has no norm to divide.
  AddCorrected(cases, "lamb", {{"limited_ratio", {{"weight_decay", 0.01}}, 2}}, Normal(0, 100));
  AddCorrected(cases, "lamb", {{"zero_parameter", {}, 2}}, List({0}));
  // Both norms are of squares that overflow f32.
  AddCorrected(cases, "lamb", {{"large_parameter", {{"weight_decay", 0.1}}, 2}}, List({1e22, -2e22, 3e21}));
  const std::vector<Variant> decoupled = {
      {"plain", {}}, {"decay", {{"weight_decay", 0.1}, {"beta1", 0.8}, {"epsilon", 1e-4}}}, UnscaledAndClipped()};
  for (const Variant& variant : decoupled) {
    for (const Shape& shape : ParameterShapes()) {
      AddForms(cases,
               {absl::StrCat("adam_weight_decay/", variant.name, "_", ShapeToString(shape)),
                "adam_weight_decay",
                variant.attributes,
                {Fixed(shape), Fixed(shape), Fixed(shape, Uniform(0.01, 1)), Fixed(shape), LearningRate()},
                {F32(shape), F32(shape), F32(shape)}},
               2, 3);
    }
  }
}

}  // namespace

std::vector<OpCase> OptimizerCases() {
  std::vector<OpCase> cases;
  AddSgd(cases);
  AddMomentum(cases);
  AddAdams(cases);
  for (Guard guard : {Guard::kAbsent, Guard::kFalse, Guard::kTrue}) {
    OpCase op_case{"increment/counter", "increment", {}, {{I32({}), List({41})}}, {I32({})}};
    if (guard != Guard::kAbsent) {
      op_case.operands.push_back({Bool({}), List({guard == Guard::kTrue ? 1.0 : 0.0})});
      op_case.name += guard == Guard::kTrue ? "_taken" : "_skipped";
    }
    op_case.low = false;
    cases.push_back(op_case);
    op_case.name += "_by_4";
    op_case.attributes = {{"by", std::int64_t{4}}};
    cases.push_back(op_case);
  }
  return cases;
}

}  // namespace mpc::op_cases
