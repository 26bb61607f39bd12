#include "frontend/graph/ops.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/trace.h"
#include "kernels/dtype.h"

namespace mpc {
namespace {

using internal::Emit;
using internal::EmitAll;
using internal::FailWith;
using internal::Trace;

// Operands with an optional last one.
std::vector<Tensor> WithOptional(const Tensor& a, const Tensor& b, const Tensor& optional) {
  if (optional.defined()) return {a, b, optional};
  return {a, b};
}

// How the graph holds a product's activation. gelu is an operation of its own, because its derivative reads the
// product, which is therefore kept. mpc-fold-activation folds gelu into the product where nothing else reads the
// product.
struct ActivationParts {
  explicit ActivationParts(const std::string& name)
      : is_gelu(name == "gelu" || name == "gelu_tanh"),
        own(is_gelu ? "none" : name),
        form(name == "gelu" ? "none" : "tanh") {}

  Tensor Behind(const Tensor& product) const { return is_gelu ? gelu(product, form) : product; }

  bool is_gelu;
  std::string own;   ///< the product's attribute
  std::string form;  ///< form of gelu: none, tanh
};

std::int64_t NormalAxis(std::int64_t axis, std::int64_t rank) { return axis < 0 ? axis + rank : axis; }

Tensor Reduce(std::string_view op, const Tensor& x, std::vector<std::int64_t> axes, bool keep_dims) {
  for (std::int64_t& axis : axes) axis = NormalAxis(axis, x.rank());
  return Emit(op, {x}, {{"axes", axes}, {"keep_dims", keep_dims}});
}

// The two results of an operation. After an error each carries it.
std::pair<Tensor, Tensor> ValuesAndIndices(std::string_view op, const Tensor& x, const Attributes& attributes) {
  const std::vector<Tensor> results = EmitAll(op, {x}, attributes);
  return {results.front(), results.back()};
}

Attributes PoolAttributes(const Pool2dOpOptions& options) {
  return {{"kernel_size", options.kernel_size},
          {"strides", options.stride.empty() ? options.kernel_size : options.stride},
          {"pad_mode", options.pad_mode},
          {"padding", options.padding}};
}

bool IsIntegerTensor(const Tensor& x) {
  return x.defined() && x.status().ok() && (x.dtype() == DType::kI32 || x.dtype() == DType::kI64);
}

// Records `op`, which has a twin for integers: "int_add" is that of "add".
Tensor Arithmetic(std::string_view op, const std::vector<Tensor>& operands) {
  const bool integers = std::all_of(operands.begin(), operands.end(), IsIntegerTensor);
  return Emit(integers ? absl::StrCat("int_", std::string(op)) : std::string(op), operands);
}

// Converts floating tensors of several types to the type that arithmetic on them has, since data movement keeps its
// element type. Other tensors stay, for the operation to refuse.
std::vector<Tensor> Promoted(std::vector<Tensor> tensors) {
  const auto floating = [](const Tensor& x) { return x.defined() && x.status().ok() && IsFloating(x.dtype()); };
  if (!std::all_of(tensors.begin(), tensors.end(), floating)) return tensors;
  DType type = tensors[0].dtype();
  for (const Tensor& x : tensors) {
    if (x.dtype() != type) type = x.dtype() == DType::kF64 || type == DType::kF64 ? DType::kF64 : DType::kF32;
  }
  for (Tensor& x : tensors) {
    if (x.dtype() != type) x = EmitAll("cast", {x}, {}, type)[0];
  }
  return tensors;
}

}  // namespace

Tensor relu(const Tensor& x) { return Emit("relu", {x}); }
Tensor sigmoid(const Tensor& x) { return Emit("sigmoid", {x}); }
Tensor tanh(const Tensor& x) { return Emit("tanh", {x}); }
Tensor exp(const Tensor& x) { return Emit("exp", {x}); }
Tensor log(const Tensor& x) { return Emit("log", {x}); }
Tensor sqrt(const Tensor& x) { return Emit("sqrt", {x}); }
Tensor neg(const Tensor& x) { return Arithmetic("neg", {x}); }
Tensor square(const Tensor& x) { return Emit("square", {x}); }
Tensor abs(const Tensor& x) { return Arithmetic("abs", {x}); }
Tensor floor(const Tensor& x) { return Emit("floor", {x}); }
Tensor log1p(const Tensor& x) { return Emit("log1p", {x}); }
Tensor sin(const Tensor& x) { return Emit("sin", {x}); }
Tensor cos(const Tensor& x) { return Emit("cos", {x}); }
Tensor silu(const Tensor& x) { return Emit("silu", {x}); }
Tensor hard_swish(const Tensor& x) { return Emit("hard_swish", {x}); }
Tensor erf(const Tensor& x) { return Emit("erf", {x}); }
Tensor gelu(const Tensor& x, const std::string& approximate) {
  return Emit("gelu", {x}, {{"approximate", approximate}});
}
Tensor leaky_relu(const Tensor& x, double alpha) { return Emit("leaky_relu", {x}, {{"alpha", alpha}}); }
Tensor prelu(const Tensor& x, const Tensor& alpha) { return Emit("prelu", {x, alpha}); }
Tensor pow(const Tensor& x, double exponent) { return Emit("pow", {x}, {{"exponent", exponent}}); }
Tensor clamp(const Tensor& x, double minimum, double maximum) {
  return Emit("clamp", {x}, {{"minimum", minimum}, {"maximum", maximum}});
}
Tensor add(const Tensor& a, const Tensor& b) { return Arithmetic("add", {a, b}); }
Tensor sub(const Tensor& a, const Tensor& b) { return Arithmetic("sub", {a, b}); }
Tensor mul(const Tensor& a, const Tensor& b) { return Arithmetic("mul", {a, b}); }
Tensor div(const Tensor& a, const Tensor& b) { return Emit("div", {a, b}); }
Tensor maximum(const Tensor& a, const Tensor& b) { return Arithmetic("maximum", {a, b}); }
Tensor minimum(const Tensor& a, const Tensor& b) { return Arithmetic("minimum", {a, b}); }
Tensor floor_div(const Tensor& a, const Tensor& b) { return Emit("int_floor_div", {a, b}); }
Tensor floor_mod(const Tensor& a, const Tensor& b) { return Emit("int_mod", {a, b}); }
Tensor equal(const Tensor& a, const Tensor& b) { return Emit("equal", {a, b}); }
Tensor greater(const Tensor& a, const Tensor& b) { return Emit("greater", {a, b}); }
Tensor less(const Tensor& a, const Tensor& b) { return Emit("less", {a, b}); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return Emit("not_equal", {a, b}); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return Emit("greater_equal", {a, b}); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return Emit("less_equal", {a, b}); }
Tensor logical_and(const Tensor& a, const Tensor& b) { return Emit("logical_and", {a, b}); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return Emit("logical_or", {a, b}); }
Tensor logical_not(const Tensor& a) { return Emit("logical_not", {a}); }
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) { return Emit("where", {condition, a, b}); }

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator-(const Tensor& x) { return neg(x); }
Tensor operator+(const Tensor& x, double value) { return Emit("add_scalar", {x}, {{"value", value}}); }
Tensor operator+(double value, const Tensor& x) { return x + value; }
Tensor operator-(const Tensor& x, double value) { return x + -value; }
Tensor operator-(double value, const Tensor& x) { return neg(x) + value; }
Tensor operator*(const Tensor& x, double value) { return Emit("mul_scalar", {x}, {{"value", value}}); }
Tensor operator*(double value, const Tensor& x) { return x * value; }
Tensor operator/(const Tensor& x, double value) { return x * (1.0 / value); }

Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias, const MatmulOptions& options) {
  const ActivationParts activation(options.activation);
  return activation.Behind(Emit(
      "matmul", WithOptional(a, b, bias),
      {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}, {"activation", activation.own}}));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOpOptions& options) {
  const ActivationParts activation(options.activation);
  return activation.Behind(Emit("conv2d", WithOptional(x, weight, bias),
                                {{"strides", options.stride},
                                 {"dilations", options.dilation},
                                 {"pad_mode", options.pad_mode},
                                 {"padding", options.padding},
                                 {"groups", options.group},
                                 {"activation", activation.own}}));
}

Tensor max_pool2d(const Tensor& x, const Pool2dOpOptions& options) {
  return Emit("max_pool2d", {x}, PoolAttributes(options));
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOpOptions& options) {
  Attributes attributes = PoolAttributes(options);
  attributes.Set("count_include_pad", options.count_include_pad);
  return Emit("avg_pool2d", {x}, attributes);
}

Tensor global_avg_pool2d(const Tensor& x) {
  if (x.rank() != 4) {
    return FailWith(absl::StrCat("global_avg_pool2d takes an image [N, C, H, W], got ", x.spec().ToString()), {1, 1});
  }
  return flatten(avg_pool2d(x, {.kernel_size = {x.dim(2), x.dim(3)}}));
}

Tensor softmax(const Tensor& x, std::int64_t axis) { return Emit("softmax", {x}, {{"axis", axis}}); }
Tensor log_softmax(const Tensor& x, std::int64_t axis) { return Emit("log_softmax", {x}, {{"axis", axis}}); }

Tensor softmax_cross_entropy(const Tensor& logits, const Tensor& labels, const std::string& reduction) {
  // Without a reduction a row with another label may be left out, as by a mask.
  if (Trace* trace = Trace::Current(); trace != nullptr && reduction != "none" && logits.rank() == 2) {
    trace->report().ExpectLabels(labels, logits.dim(1));
  }
  return Emit("softmax_cross_entropy", {logits, labels}, {{"reduction", reduction}});
}

Tensor mse(const Tensor& prediction, const Tensor& target, const std::string& reduction) {
  return Emit("mse", {prediction, target}, {{"reduction", reduction}});
}

Tensor dropout(const Tensor& x, double p) {
  Trace* trace = Trace::Current();
  if (trace == nullptr || !trace->training()) return x;
  const internal::RandomUses::Use random = trace->random().Next();
  return Emit("dropout", {x, random.seed, random.step}, {{"p", p}, {"call_site", random.call_site}});
}

Tensor reshape(const Tensor& x, std::vector<std::int64_t> shape) {
  std::int64_t known = 1;
  std::int64_t* inferred = nullptr;
  for (std::int64_t& extent : shape) {
    if (extent != -1) {
      known *= extent;
    } else if (inferred == nullptr) {
      inferred = &extent;
    } else {
      return FailWith("reshape takes at most one extent of -1", shape);
    }
  }
  if (inferred != nullptr) {
    if (known <= 0 || x.size() % known != 0) {
      return FailWith(absl::StrCat("reshape cannot infer -1: ", x.spec().ToString(), " has ", x.size(),
                                   " elements, the other extents multiply to ", known),
                      shape);
    }
    *inferred = x.size() / known;
  }
  return Emit("reshape", {x}, {{"shape", shape}});
}

Tensor flatten(const Tensor& x) {
  if (x.rank() < 1) return FailWith("flatten takes a tensor of rank 1 or more", {});
  return reshape(x, {x.dim(0), x.size() / std::max<std::int64_t>(1, x.dim(0))});
}

Tensor transpose(const Tensor& x, std::vector<std::int64_t> permutation) {
  return Emit("transpose", {x}, {{"permutation", std::move(permutation)}});
}

Tensor broadcast_to(const Tensor& x, std::vector<std::int64_t> shape) {
  return Emit("broadcast_to", {x}, {{"shape", std::move(shape)}});
}

Tensor reduce_sum(const Tensor& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return Reduce("reduce_sum", x, std::move(axes), keep_dims);
}

Tensor reduce_mean(const Tensor& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return Reduce("reduce_mean", x, std::move(axes), keep_dims);
}

Tensor reduce_max(const Tensor& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return Reduce("reduce_max", x, std::move(axes), keep_dims);
}

Tensor reduce_min(const Tensor& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return Reduce("reduce_min", x, std::move(axes), keep_dims);
}

Tensor reduce_prod(const Tensor& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return Reduce("reduce_prod", x, std::move(axes), keep_dims);
}

Tensor cumsum(const Tensor& x, std::int64_t axis, bool exclusive, bool reverse) {
  return Emit("cumsum", {x}, {{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}});
}

std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t axis, bool descending) {
  return ValuesAndIndices("sort", x, {{"axis", axis}, {"descending", descending}});
}

std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  return ValuesAndIndices("top_k", x, {{"k", k}, {"axis", axis}, {"smallest", !largest}});
}

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  if (tensors.empty()) return FailWith("concat takes at least one tensor", {});
  return Emit("concat", Promoted(tensors), {{"axis", axis}});
}

std::vector<Tensor> split(const Tensor& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
  std::vector<Tensor> pieces = EmitAll("split", {x}, {{"sizes", sizes}, {"axis", axis}});
  // After an error each piece carries it.
  pieces.resize(std::max<std::size_t>(1, sizes.size()), pieces.front());
  return pieces;
}

Tensor slice(const Tensor& x, const std::vector<std::int64_t>& starts, const std::vector<std::int64_t>& sizes) {
  return Emit("slice", {x}, {{"starts", starts}, {"sizes", sizes}});
}

Tensor pad(const Tensor& x, const std::vector<std::int64_t>& low, const std::vector<std::int64_t>& high, double value) {
  return Emit("pad", {x}, {{"low", low}, {"high", high}, {"value", value}});
}

Tensor gather(const Tensor& table, const Tensor& indices) { return Emit("gather", {table, indices}); }

Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates) {
  return Emit("scatter_add", {x, indices, updates});
}

Tensor one_hot(const Tensor& indices, std::int64_t depth, double on, double off) {
  return Emit("one_hot", {indices}, {{"depth", depth}, {"on", on}, {"off", off}});
}

Tensor sum_n(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) return FailWith("sum_n takes at least one tensor", {});
  return Emit("sum_n", tensors);
}

Tensor argmax(const Tensor& x, std::int64_t axis) { return Emit("argmax", {x}, {{"axis", axis}}); }

Tensor arange(std::int64_t start, std::int64_t end, std::int64_t step, DType dtype) {
  // A distance of the ends is exact in f64 up to 2^53, more than a tensor has elements.
  const double count = std::ceil((static_cast<double>(end) - static_cast<double>(start)) / static_cast<double>(step));
  if (step == 0 || !(count >= 1 && count <= 0x1p47)) {
    return FailWith(absl::StrCat("arange takes a step that leads from start towards end, got start ", start, ", end ",
                                 end, " and step ", step),
                    {1});
  }
  const Shape shape = {static_cast<std::int64_t>(count)};
  return EmitAll("iota", {}, {{"shape", shape}, {"start", start}, {"step", step}}, dtype)[0];
}

Tensor arange(std::int64_t end) { return arange(0, end); }

Tensor iota(const Shape& shape, std::int64_t axis, DType dtype) {
  return EmitAll("iota", {}, {{"shape", shape}, {"axis", axis}}, dtype)[0];
}

Tensor stop_gradient(const Tensor& x) { return Emit("stop_gradient", {x}); }

Tensor cast(const Tensor& x, DType dtype) { return EmitAll("cast", {x}, {{"user", true}}, dtype)[0]; }

namespace ops {

Tensor Cast(const Tensor& x, DType dtype) { return cast(x, dtype); }

Tensor Fill(DType dtype, const Shape& shape, double value) {
  if (Trace* trace = Trace::Current()) return trace->Splat({dtype, shape}, value);
  return Tensor::Full(shape, value, dtype);
}

Tensor FullLike(const Tensor& like, double value) { return Fill(like.dtype(), like.shape(), value); }

Tensor Depend(const Tensor& value, bool) { return value; }

}  // namespace ops
}  // namespace mpc
