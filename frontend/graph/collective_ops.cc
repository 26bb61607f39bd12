#include "frontend/graph/collective_ops.h"

#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/distributed/distributed.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/trace.h"
#include "kernels/communicator.h"

namespace mpc::ops {
namespace {

using mpc::internal::Emit;
using mpc::internal::FailWith;
using mpc::internal::Trace;

/// One function of this file on one tensor.
class Collective {
 public:
  Collective(const char* name, const Tensor& x) : name_(name), x_(x) {
    const Trace* trace = Trace::Current();
    if (trace != nullptr) {
      count_ = trace->processes().count;
      leaves_others_out_ = count_ == 1 && !trace->training() && distributed::GetRankSize() > 1;
    } else if (const auto group = distributed::internal::GetCommunicator(); group != nullptr) {
      count_ = group->size();
    }
  }

  std::int64_t count() const { return count_; }

  /// An error where the other processes do not run the step, or x is none of what `accepted` says.
  std::optional<Tensor> Refused(bool takes_type, const char* accepted) const {
    if (leaves_others_out_) {
      return Fail(absl::StrCat("belongs into a step that all processes run. This one is run by each of ",
                               distributed::GetRankSize(),
                               " processes alone, as those of Model::Eval and Model::Predict are; leave it out where "
                               "training() is false"));
    }
    if (!x_.defined()) return Fail("was given an undefined tensor");
    if (!x_.status().ok()) return x_;
    if (!takes_type) return Fail(absl::StrCat("takes ", accepted, ", got ", x_.spec().ToString()));
    return std::nullopt;
  }
  Tensor Fail(const std::string& message) const {
    return FailWith(absl::StrCat("ops::", name_, " ", message), x_.defined() ? x_.shape() : Shape());
  }

  Tensor Run(std::string_view operation, const Tensor& x) const {
    return Emit(operation, {x}, {{"processes", count_}});
  }
  /// The tensors of all processes, under a new first axis.
  Tensor Gathered() const { return Run("all_gather", x_); }
  Tensor Rank() const { return Emit("process_rank", {}, {{"processes", count_}}); }

 private:
  const char* name_;
  const Tensor& x_;
  std::int64_t count_ = 1;
  bool leaves_others_out_ = false;
};

bool IsFloatingTensor(const Tensor& x) { return x.defined() && x.status().ok() && IsFloating(x.dtype()); }

bool HasType(const Tensor& x, DType dtype) { return x.defined() && x.status().ok() && x.dtype() == dtype; }

Tensor Reduced(const Collective& collective, const Tensor& x, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return collective.Run("all_reduce", x);
    case ReduceOp::kMean:
      return collective.Run("all_reduce", x * (1.0 / static_cast<double>(collective.count())));
    case ReduceOp::kMax:
      return HasType(x, DType::kI32) ? collective.Run("all_reduce_max", x) : reduce_max(collective.Gathered(), {0});
  }
  return x;
}

}  // namespace

Tensor AllReduce(const Tensor& x, ReduceOp op) {
  const Collective collective("AllReduce", x);
  const bool takes = IsFloatingTensor(x) || (op == ReduceOp::kMax && HasType(x, DType::kI32));
  if (const auto refused = collective.Refused(
          takes, op == ReduceOp::kMax ? "a floating or an i32 tensor" : "a floating tensor; cast integers first")) {
    return *refused;
  }
  return collective.count() == 1 ? x : Reduced(collective, x, op);
}

Tensor AllGather(const Tensor& x) {
  const Collective collective("AllGather", x);
  if (const auto refused = collective.Refused(/*takes_type=*/true, "")) return *refused;
  Shape shape = x.shape();
  if (shape.empty()) shape = {1};
  shape.front() *= collective.count();
  return reshape(collective.count() == 1 ? x : collective.Gathered(), shape);
}

Tensor ReduceScatter(const Tensor& x, ReduceOp op) {
  const Collective collective("ReduceScatter", x);
  if (const auto refused = collective.Refused(IsFloatingTensor(x), "a floating tensor")) return *refused;
  if (x.rank() == 0 || x.dim(0) % collective.count() != 0) {
    return collective.Fail(absl::StrCat("splits axis 0 into equal parts of ", collective.count(), " processes, got ",
                                        x.spec().ToString()));
  }
  if (collective.count() == 1) return x;
  Shape parts = x.shape();
  parts.front() /= collective.count();
  parts.insert(parts.begin(), collective.count());
  return gather(reshape(Reduced(collective, x, op), parts), collective.Rank());
}

Tensor Broadcast(const Tensor& x, int root_rank) {
  const Collective collective("Broadcast", x);
  const bool is_integer = HasType(x, DType::kI32) || HasType(x, DType::kI64);
  if (const auto refused = collective.Refused(IsFloatingTensor(x) || is_integer, "a floating, i32 or i64 tensor")) {
    return *refused;
  }
  if (root_rank < 0 || root_rank >= collective.count()) {
    return collective.Fail(absl::StrCat("takes a root_rank from 0 to ", collective.count() - 1, ", got ", root_rank));
  }
  if (collective.count() == 1) return x;
  if (is_integer) {
    std::vector<std::int64_t> starts(static_cast<std::size_t>(x.rank()) + 1, 0);
    starts.front() = root_rank;
    Shape row = x.shape();
    row.insert(row.begin(), 1);
    return reshape(slice(collective.Gathered(), starts, row), x.shape());
  }
  // -0 is what every number, 0 and -0 too, keeps its bits with in a sum.
  const Tensor is_root = equal(collective.Rank(), Fill(DType::kI32, {}, root_rank));
  return collective.Run("all_reduce", where(is_root, x, Fill(x.dtype(), {}, -0.0)));
}

}  // namespace mpc::ops
