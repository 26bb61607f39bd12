// Every derivative rule against central finite differences, in f64, over the table of operation cases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "compiler/dialect/dialect.h"
#include "compiler/interpreter/interpreter.h"
#include "tests/compiler/op_case_module.h"

namespace mpc {
namespace {

using op_cases::AllOpCases;
using op_cases::OpCase;
using reference::Tensor;

/// Inputs of a differentiable case are of order 1; u^(1/4) balances truncation against rounding when two step sizes are
/// compared.
constexpr double kStep = 0x1p-13;
constexpr double kUnitRoundoff = 0x1p-53;
/// Perturbed elements an operand, beside one direction through all of them.
constexpr std::size_t kSamples = 4;

bool hasRule(mlir::MLIRContext& Context, const OpCase& Case) {
  return mlir::OperationName("mpc." + Case.op, &Context).hasInterface<DifferentiableOpInterface>();
}

bool isDifferentiated(mlir::MLIRContext& Context, const OpCase& Case) {
  return hasRule(Context, Case) &&
         std::any_of(Case.operands.begin(), Case.operands.end(),
                     [](const op_cases::OperandCase& Operand) { return Operand.differentiable; });
}

/// Distinct values at least 1/64 apart, in the order of the given ones.
void spreadRanks(std::vector<double>& Values) {
  std::vector<std::size_t> Order(Values.size());
  std::iota(Order.begin(), Order.end(), 0);
  std::stable_sort(Order.begin(), Order.end(), [&](std::size_t A, std::size_t B) { return Values[A] < Values[B]; });
  for (std::size_t Rank = 0; Rank < Order.size(); ++Rank)
    Values[Order[Rank]] = (double(Rank) - double(Order.size()) / 2) / 64;
}

/// Moves inputs away from the points where an operation has no derivative.
void avoidKinks(const OpCase& Case, std::vector<Tensor>& Inputs) {
  static const std::set<std::string> kKinksAtZero = {"relu", "abs", "leaky_relu", "prelu"};
  if (kKinksAtZero.count(Case.op))
    for (double& X : Inputs[0].values) X = std::copysign(std::max(std::abs(X), 1.0 / 64), X);
  // Odd multiples of 1/64 are no integers, and no limits of a clamp.
  if (Case.op == "floor" || Case.op == "clamp")
    for (double& X : Inputs[0].values) X = std::floor(X * 32) / 32 + 1.0 / 64;
  static const std::set<std::string> kKinksAtTies = {"max_pool2d", "reduce_max", "reduce_min", "sort", "top_k"};
  if (kKinksAtTies.count(Case.op)) spreadRanks(Inputs[0].values);
  if (Case.op == "maximum" || Case.op == "minimum")
    // Multiples of 1/16 and odd multiples of 1/32 are never closer than 1/32.
    for (std::size_t Operand : {0, 1})
      for (double& X : Inputs[Operand].values) X = std::round(X * 16) / 16 + double(Operand) / 32;
}

/// A relu activation has kinks that inputs cannot avoid: a step across one says nothing.
bool crossesKink(const OpCase& Case, const Tensor& Low, const Tensor& High) {
  if (Case.attributes.GetString("activation", "none") != "relu") return false;
  for (std::size_t I = 0; I < Low.values.size(); ++I)
    if ((Low.values[I] > 0) != (High.values[I] > 0)) return true;
  return false;
}

class GradientCheck : public testing::Test {
 protected:
  std::vector<Tensor> run(mlir::ModuleOp Module, const char* Name, const std::vector<Tensor>& Inputs) {
    absl::StatusOr<std::vector<Tensor>> Results =
        interpret(Module.lookupSymbol<mlir::func::FuncOp>(Name), Inputs, reference::Rounding::kLowOnly);
    EXPECT_TRUE(Results.ok()) << Results.status();
    return Results.ok() ? *std::move(Results) : std::vector<Tensor>();
  }

  std::vector<Tensor> gradients(const OpCase& Case, DType Storage, std::vector<Tensor> Inputs);

  std::unique_ptr<mlir::MLIRContext> Context = makeContext();
};

/// A difference quotient along `Direction` of operand `Operand`, and how far it may be from the derivative.
struct Quotient {
  double Value = 0;
  double Tolerance = 0;
  bool CrossesKink = false;
};

class DifferenceQuotient {
 public:
  DifferenceQuotient(const OpCase& Case, mlir::func::FuncOp Forward, std::vector<Tensor> Inputs, Tensor Cotangent)
      : Case(Case), Forward(Forward), Inputs(std::move(Inputs)), Cotangent(std::move(Cotangent)) {}

  /// The error of D(h) is t h^2 + O(h^4) + rounding, so D(2h) - D(h) = 3 t h^2: twice that difference bounds the
  /// truncation also where the next term is as large. Rounding errors of a sum of n terms grow as sqrt(n) with high
  /// probability (Higham and Mary 2019, lambda = 8), relative to what is summed, and are divided by h.
  Quotient along(std::size_t Operand, const std::vector<double>& Direction) {
    Quotient Fine = central(Operand, Direction, kStep), Coarse = central(Operand, Direction, 2 * kStep);
    Fine.Tolerance += 2 * std::abs(Coarse.Value - Fine.Value);
    Fine.CrossesKink |= Coarse.CrossesKink;
    return Fine;
  }

 private:
  Tensor evaluate(std::size_t Operand, const std::vector<double>& Direction, double Step) {
    std::vector<Tensor> Moved = Inputs;
    for (std::size_t I = 0; I < Direction.size(); ++I) Moved[Operand].values[I] += Step * Direction[I];
    return interpret(Forward, Moved, reference::Rounding::kLowOnly)->front();
  }

  Quotient central(std::size_t Operand, const std::vector<double>& Direction, double Step) {
    Tensor Low = evaluate(Operand, Direction, -Step), High = evaluate(Operand, Direction, Step);
    Quotient Result;
    Result.CrossesKink = crossesKink(Case, Low, High);
    std::size_t Terms = 1;
    for (const Tensor& Input : Inputs) Terms = std::max(Terms, Input.values.size());
    double Moved = 0, Still = 0;
    for (std::size_t I = 0; I < Low.values.size(); ++I) {
      Result.Value += Cotangent.values[I] * (High.values[I] - Low.values[I]);
      bool Changed = Low.values[I] != High.values[I];
      (Changed ? Moved : Still) += std::abs(Cotangent.values[I]) * (double(Changed) + std::abs(High.values[I]));
    }
    Result.Value /= 2 * Step;
    // A result that did not move hides at most half a unit in its last place.
    Result.Tolerance = (8 * std::sqrt(double(Terms)) * Moved + Still) * kUnitRoundoff / Step;
    return Result;
  }

  const OpCase& Case;
  mlir::func::FuncOp Forward;
  std::vector<Tensor> Inputs;
  Tensor Cotangent;
};

/// Multiples of 1/8 in [-1, 1]: exact in every type.
Tensor makeCotangent(const TensorSpec& Result, std::mt19937& Random) {
  Tensor Cotangent{{DType::kF32, Result.shape}, std::vector<double>(Result.num_elements())};
  for (double& Value : Cotangent.values) Value = double(int(Random() % 17) - 8) / 8;
  return Cotangent;
}

/// All elements of a small operand, else some of each part; then one direction through all of them.
std::vector<std::vector<double>> directions(std::size_t Elements, std::mt19937& Random) {
  std::vector<std::vector<double>> Result;
  std::size_t Samples = std::min(Elements, kSamples);
  for (std::size_t Sample = 0; Sample < Samples; ++Sample) {
    std::size_t Begin = Elements * Sample / Samples, End = Elements * (Sample + 1) / Samples;
    Result.emplace_back(Elements, 0.0);
    Result.back()[Begin + Random() % (End - Begin)] = 1;
  }
  Result.emplace_back(Elements);
  for (double& Value : Result.back()) Value = Random() % 2 ? 0.5 : -0.5;
  return Result;
}

TEST_F(GradientCheck, RulesAgreeWithFiniteDifferences) {
  for (const OpCase& Case : AllOpCases()) {
    if (!isDifferentiated(*Context, Case)) continue;
    SCOPED_TRACE(Case.name);
    auto Module = gradientModule(*Context, Case, DType::kF32);
    auto Forward = forwardModule(*Context, Case, DType::kF32);
    ASSERT_TRUE(llvm::succeeded(runAutodiff(*Module)));

    std::mt19937 Random(17);
    std::vector<Tensor> Inputs = MakeInputs(Case, DType::kF32);
    avoidKinks(Case, Inputs);
    Tensor Cotangent = makeCotangent(Case.results.front(), Random);
    DifferenceQuotient Quotients(Case, Forward->lookupSymbol<mlir::func::FuncOp>("forward"), Inputs, Cotangent);
    std::vector<Tensor> Arguments = Inputs;
    Arguments.push_back(Cotangent);
    std::vector<Tensor> Gradients = run(*Module, "gradients", Arguments);

    std::size_t Next = 0, Compared = 0, Skipped = 0;
    for (std::size_t Operand = 0; Operand < Case.operands.size(); ++Operand) {
      if (!Case.operands[Operand].differentiable) continue;
      const Tensor& Gradient = Gradients.at(Next++);
      ASSERT_EQ(Gradient.spec, Case.operands[Operand].spec);
      for (const std::vector<double>& Direction : directions(Gradient.values.size(), Random)) {
        Quotient Expected = Quotients.along(Operand, Direction);
        ++(Expected.CrossesKink ? Skipped : Compared);
        if (Expected.CrossesKink) continue;
        double Actual = std::inner_product(Direction.begin(), Direction.end(), Gradient.values.begin(), 0.0);
        // The analytic value has roundings of its own, smaller by the step.
        EXPECT_NEAR(Actual, Expected.Value, Expected.Tolerance + 1e-12 * std::abs(Actual)) << "operand " << Operand;
      }
    }
    EXPECT_GE(Compared, Skipped) << "too many steps crossed a kink of the activation";
  }
}

double norm(const std::vector<double>& Values) {
  return std::sqrt(std::inner_product(Values.begin(), Values.end(), Values.begin(), 0.0));
}

/// The gradients of the case in `Storage`, at inputs that are exact in f16 or bf16.
std::vector<Tensor> GradientCheck::gradients(const OpCase& Case, DType Storage, std::vector<Tensor> Inputs) {
  auto Module = gradientModule(*Context, Case, Storage);
  EXPECT_TRUE(llvm::succeeded(runAutodiff(*Module)));
  std::vector<TensorSpec> Specs = OperandSpecs(Case, Storage);
  for (std::size_t Operand = 0; Operand < Specs.size(); ++Operand) Inputs[Operand].spec = Specs[Operand];
  return run(*Module, "gradients", Inputs);
}

TEST_F(GradientCheck, LowRulesDifferFromWideOnesByTheirRoundings) {
  for (const OpCase& Case : AllOpCases()) {
    if (!isDifferentiated(*Context, Case) || !Case.low) continue;
    for (DType Low : {DType::kF16, DType::kBF16}) {
      SCOPED_TRACE(Case.name + " in " + std::string(DTypeName(Low)));
      std::mt19937 Random(17);
      std::vector<Tensor> Inputs = MakeInputs(Case, Low);
      Tensor Cotangent = makeCotangent(Case.results.front(), Random);
      Inputs.push_back(Cotangent);
      std::vector<Tensor> Actual = gradients(Case, Low, Inputs), Expected = gradients(Case, DType::kF32, Inputs);
      ASSERT_EQ(Actual.size(), Expected.size());
      double Unit = Low == DType::kF16 ? 0x1p-11 : 0x1p-8, Underflow = Low == DType::kF16 ? 0x1p-25 : 0x1p-134;
      for (std::size_t Index = 0; Index < Actual.size(); ++Index) {
        std::vector<double> Error(Actual[Index].values);
        for (std::size_t I = 0; I < Error.size(); ++I) {
          // exp overflows f16 at 11.1, and its derivative reads the result.
          bool Overflowed = Case.op == "exp" && !std::isfinite(Error[I]);
          Error[I] = Overflowed ? 0 : Error[I] - Expected[Index].values[I];
        }
        // At most four roundings in a row change the gradient (y, the cotangent before the activation, a broadcast
        // term, the result). Rules that read y see 1 - y or 1 - y^2, where its rounding weighs up to twice the
        // cotangent. Below the smallest normal number the error of a rounding is absolute.
        double Tolerance = Unit * (4 * norm(Expected[Index].values) + 2 * norm(Cotangent.values)) +
                           Underflow * std::sqrt(double(Error.size()));
        EXPECT_LE(norm(Error), Tolerance) << "gradient " << Index;
      }
    }
  }
}

TEST_F(GradientCheck, CoversEveryDifferentiableOperation) {
  std::set<std::string> Checked;
  for (const OpCase& Case : AllOpCases())
    if (isDifferentiated(*Context, Case)) Checked.insert("mpc." + Case.op);
  for (mlir::RegisteredOperationName Name : Context->getRegisteredOperationsByDialect("mpc")) {
    if (!Name.hasInterface<DifferentiableOpInterface>()) continue;
    // Its derivative is a function of the user's; the other's is zero by definition: see autodiff_test.cc.
    if (Name.getStringRef() == CustomVjpOp::getOperationName()) continue;
    if (Name.getStringRef() == StopGradientOp::getOperationName()) continue;
    EXPECT_TRUE(Checked.count(Name.getStringRef().str()))
        << Name.getStringRef().str() << " has a derivative rule and no differentiable operand in the table";
  }
}

}  // namespace
}  // namespace mpc
