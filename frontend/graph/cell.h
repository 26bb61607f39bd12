// The building block of networks.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/identity.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/tensor.h"
#include "frontend/graph/tensor_tree.h"
#include "frontend/graph/trace.h"

namespace mpc::internal {
struct StepOptions;
}  // namespace mpc::internal

namespace mpc::amp::internal {
struct Session;
}  // namespace mpc::amp::internal

namespace mpc::nn {

class Cell;

namespace internal {

/// Traces, compiles and runs a Cell on concrete tensors. On an error every output carries it.
std::vector<Tensor> RunEagerly(Cell& cell, const mpc::internal::TensorFunction& function,
                               const std::vector<Tensor>& inputs);

/// Receives the members of a Cell.
class MemberVisitor {
 public:
  virtual ~MemberVisitor() = default;
  virtual void Visit(const std::string& name, Cell& cell) = 0;
  virtual void Visit(const std::string& name, Parameter& parameter) = 0;
};

using MemberLister = void (*)(Cell&, MemberVisitor&);

/// Adds a class's member list to its object. Each class of a hierarchy adds its own.
struct MemberRegistrar {
  MemberRegistrar(Cell* cell, MemberLister lister);
  MemberRegistrar(const MemberRegistrar&) {}
  MemberRegistrar& operator=(const MemberRegistrar&) { return *this; }
};

}  // namespace internal

/// Base of networks, layers, losses and training steps.
///
/// A Cell class has a method `Construct` that takes a fixed list of Tensors, or one `std::vector<Tensor>`. It returns a
/// Tensor, or a tuple, a pair, a vector or a struct of Tensors. The line MPC_CELL names the class's sub-cells and
/// Parameters and makes its objects callable:
///
///     class Block : public mpc::nn::Cell {
///      public:
///       MPC_CELL(Block, conv, norm)
///       mpc::Tensor Construct(mpc::Tensor x) { return relu(norm(conv(x))); }
///      private:
///       mpc::nn::Conv2d conv{16, 16, 3};
///       mpc::nn::BatchNorm2d norm{16};
///     };
///
/// SetTrain and checkpoints do not reach a sub-cell that is called but not named there. Compiling the network reports
/// an error if such a sub-cell has Parameters or sub-cells, asks whether it trains, or was given a precision or
/// Recompute(). Other sub-cells, such as activations and most losses, need no name. Copies of a Cell share its
/// Parameters.
///
/// A step is compiled once. It is compiled anew after another Cell, Parameter or optimizer was assigned to one that it
/// was traced from: `net.fc = mpc::nn::Dense(4, 2)`. Members of other types, such as a factor, are constants of the
/// compiled step. Call ForgetPrograms() after changing one.
class Cell {
 public:
  Cell();
  /// Shares the Parameters. Takes over mode, ToFloat, Recompute and session. Does not share Programs that were compiled
  /// for direct calls. Programs that were traced from a Cell before it was assigned to are not used after it.
  Cell(const Cell& other);
  Cell& operator=(const Cell& other);
  virtual ~Cell() = default;

  /// The class's name: "LeNet5".
  virtual std::string TypeName() const;
  /// True for losses: they compute in f32 at every level.
  virtual bool is_loss() const { return false; }

  /// Every Parameter below this Cell with its dotted path ("conv1.weight"), depth first in the order of declaration.
  /// One that is found twice has its first path. Undefined ones are left out. Names the Parameters by these paths, but
  /// not within a trace: there their names are the paths of the step.
  std::vector<std::pair<std::string, Parameter>> ParametersAndNames();
  /// The Parameters that require gradients, in the same order.
  std::vector<Parameter> TrainableParams();
  /// By any of its paths. Errors (NOT_FOUND): the path and those that exist.
  absl::StatusOr<Parameter> GetParameter(std::string_view path);
  /// Errors: those of GetParameter and Parameter::SetData.
  absl::Status SetParameter(std::string_view path, const Tensor& value);

  /// Switches between training behaviour (batch statistics, dropout) and inference, for this Cell and its sub-cells.
  /// Model::Train calls it on its whole step, frozen networks included. `teacher.SetTrain(false)` as the first line of
  /// the step's `Construct` keeps one of them in inference.
  Cell& SetTrain(bool train = true);
  /// Whether this Cell is in training mode. A running trace fails if this Cell is called and not named in MPC_CELL.
  bool training() const;
  /// Freezes or unfreezes the Parameters that have a path below `prefix` ("" for all), which ends where a name ends. A
  /// tied one has several. Running statistics stay. What was made with requires_grad = false, as gamma of a norm with
  /// affine = false, is unfrozen by its own path alone. Errors (NOT_FOUND): no such path.
  absl::Status SetRequiresGrad(std::string_view prefix, bool requires_grad);
  /// Computes this Cell and its sub-cells in `dtype` whatever the AMP level says; a later call on a sub-cell wins
  /// there. Compiling the network reports an error for another type than f32, f16 and bf16.
  Cell& ToFloat(DType dtype);
  std::optional<DType> to_float() const { return to_float_; }
  /// Keeps only the inputs and the outputs of each call of this Cell for the backward pass. The backward pass computes
  /// the values between them again where it needs them: less memory for more work. Losses, gradients and state are the
  /// same bits: dropout draws the same mask again, running statistics move once. Inside another Cell with Recompute()
  /// it has no effect of its own. The report of a compiled step says what is computed again and how many bytes that
  /// saves; see docs/memory.md. `recompute = false` takes it back.
  Cell& Recompute(bool recompute = true);
  bool recompute() const { return recompute_; }
  /// Compiles every step that calls this Cell anew, of Models too, when it runs next. State is kept. Call it after a
  /// change that a compiled step cannot see: of a member that is no Cell, no Parameter and no optimizer.
  Cell& ForgetPrograms();
  /// What amp::Initialize has given this Cell; null without it.
  const std::shared_ptr<amp::internal::Session>& amp_session() const { return amp_session_; }
  void set_amp_session(std::shared_ptr<amp::internal::Session> session) { amp_session_ = std::move(session); }
  /// What compiled steps know this Cell by.
  const mpc::internal::Identity& identity() const { return identity_; }

  /// A table of sub-cells, Parameter shapes and counts.
  std::string Summary();

  /// Calls `visitor` with each direct member.
  virtual void VisitMembers(internal::MemberVisitor& visitor);

  /// True for Cells whose `Construct` is a training step.
  virtual bool is_training_step() const { return false; }
  /// Sets the options that a direct call of this Cell compiles with (loss-scale wrap, networks).
  virtual void ConfigureStep(mpc::internal::StepOptions& options) {}

  /// What this Cell's `Construct` traces, where objects of its class trace different things.
  virtual std::string variant() const { return ""; }

  /// True if this Cell's name for a sub-cell is left out of paths (wrappers such as WithLossCell).
  virtual bool transparent() const { return false; }

 private:
  friend struct internal::MemberRegistrar;
  friend std::vector<Tensor> internal::RunEagerly(Cell&, const mpc::internal::TensorFunction&,
                                                  const std::vector<Tensor>&);
  friend std::vector<mpc::internal::CellSettings> mpc::internal::SettingsBelow(Cell&);
  std::vector<internal::MemberLister> listers_;
  bool training_ = false;
  std::optional<DType> to_float_;
  bool recompute_ = false;
  std::shared_ptr<amp::internal::Session> amp_session_;
  std::shared_ptr<void> eager_programs_;  ///< Programs compiled for direct calls
  mpc::internal::Identity identity_;
};

namespace internal {

template <typename C, typename... Args>
ConstructResult<C> Call(C& cell, const Args&... args) {
  using Result = ConstructResult<C>;
  std::vector<Tensor> inputs;
  (AppendInput(args, inputs), ...);
  if (mpc::internal::Trace* trace = mpc::internal::Trace::Current()) {
    trace->EnterCell(cell, inputs);
    Result result = [&]() -> Result {
      if constexpr (ConstructArity<C>() < 0) {
        return cell.Construct(inputs);
      } else {
        return cell.Construct(args...);
      }
    }();
    std::vector<Tensor> outputs;
    TensorTree<Result>::Flatten(result, outputs);
    return TensorTree<Result>::Unflatten(trace->LeaveCell(std::move(outputs)));
  }
  const std::vector<Tensor> outputs = RunEagerly(
      cell,
      [&cell](const std::vector<Tensor>& symbolic) {
        std::vector<Tensor> flat;
        TensorTree<Result>::Flatten(CallFlat(cell, symbolic), flat);
        return flat;
      },
      inputs);
  return TensorTree<Result>::Unflatten(outputs);
}

}  // namespace internal

/// A class derived from Cell, or a reference to one.
template <typename T>
concept CellType = std::is_base_of_v<Cell, std::decay_t<T>>;

/// A Cell of any type as a function of a flat list of tensors. Does not own the Cell.
class CellFunction {
 public:
  CellFunction() = default;
  template <CellType C>
  CellFunction(C& cell)  // NOLINT: a Cell stands where a function of tensors does
      : cell_(&cell),
        function_([&cell](const std::vector<Tensor>& inputs) {
          using Result = std::decay_t<decltype(internal::CallFlat(cell, inputs))>;
          std::vector<Tensor> outputs;
          internal::TensorTree<Result>::Flatten(internal::CallFlat(cell, inputs), outputs);
          return outputs;
        }),
        arity_(internal::ConstructArity<C>()) {}

  bool defined() const { return cell_ != nullptr; }
  Cell* cell() const { return cell_; }
  /// Number of tensors `Construct` takes; negative if any number. 0 for an undefined function, which cannot be called.
  int arity() const { return arity_; }
  /// Calls the Cell; returns its outputs. Another number of tensors is an error, as one of an operation is.
  std::vector<Tensor> Flat(const std::vector<Tensor>& inputs) const { return function_(inputs); }
  /// Calls the Cell; returns its first output, which must exist.
  template <typename... Args>
  Tensor operator()(const Args&... args) const {
    std::vector<Tensor> inputs;
    (internal::AppendInput(args, inputs), ...);
    return function_(inputs).at(0);
  }

 private:
  Cell* cell_ = nullptr;
  mpc::internal::TensorFunction function_;
  int arity_ = 0;
};

}  // namespace mpc::nn

// Applies `macro` to each argument (up to 40).
#define MPC_PARENS ()
#define MPC_EXPAND(...) MPC_EXPAND3(MPC_EXPAND3(MPC_EXPAND3(__VA_ARGS__)))
#define MPC_EXPAND3(...) MPC_EXPAND2(MPC_EXPAND2(MPC_EXPAND2(__VA_ARGS__)))
#define MPC_EXPAND2(...) MPC_EXPAND1(MPC_EXPAND1(MPC_EXPAND1(__VA_ARGS__)))
#define MPC_EXPAND1(...) __VA_ARGS__
#define MPC_FOR_EACH(macro, ...) __VA_OPT__(MPC_EXPAND(MPC_FOR_EACH_STEP(macro, __VA_ARGS__)))
#define MPC_FOR_EACH_STEP(macro, first, ...) macro(first) __VA_OPT__(MPC_FOR_EACH_AGAIN MPC_PARENS(macro, __VA_ARGS__))
#define MPC_FOR_EACH_AGAIN() MPC_FOR_EACH_STEP
#define MPC_VISIT_MEMBER(member) mpc_visitor.Visit(#member, mpc_self.member);

/// Names the sub-cells and Parameters of a Cell class (paths are the members' names) and makes its objects callable.
/// Stands in the public section; the members may be private.
#define MPC_CELL(Type, ...)                                                                         \
  template <typename... MpcArgs>                                                                    \
  auto operator()(const MpcArgs&... args) {                                                         \
    return ::mpc::nn::internal::Call(*this, args...);                                               \
  }                                                                                                 \
  std::string TypeName() const override { return #Type; }                                           \
                                                                                                    \
 private:                                                                                           \
  static void MpcListMembers(::mpc::nn::Cell& mpc_cell,                                             \
                             [[maybe_unused]] ::mpc::nn::internal::MemberVisitor& mpc_visitor) {    \
    [[maybe_unused]] Type& mpc_self = static_cast<Type&>(mpc_cell);                                 \
    MPC_FOR_EACH(MPC_VISIT_MEMBER, __VA_ARGS__)                                                     \
  }                                                                                                 \
  [[no_unique_address]] ::mpc::nn::internal::MemberRegistrar mpc_registrar_{this, &MpcListMembers}; \
                                                                                                    \
 public:
