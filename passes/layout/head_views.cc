// A view moves with its elements from tensor to tensor. Each of its indices walks along one axis of a tensor, so that
// what an operation does to axes gives the strides behind it.
#include "passes/layout/head_views.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"

#include <optional>

using namespace mlir;

namespace mpc {

namespace {

/// Heads [B, H, T, D] in a tensor. Indices count the tensor's elements in row-major order.
struct HeadView {
  int64_t first = 0;
  std::array<int64_t, 4> strides{}; ///< from one index of B, H, T and D to the next; 0 along an extent of 1
};

/// What a tensor's elements are in another tensor: element 0 lies at \p first, neighbours along axis i are strides[i]
/// apart.
struct Placement {
  int64_t first = 0;
  SmallVector<int64_t> strides;
};

ArrayRef<int64_t> shapeOf(Value v) { return cast<RankedTensorType>(v.getType()).getShape(); }

SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis > 1; --axis)
    strides[axis - 2] = strides[axis - 1] * shape[axis - 1];
  return strides;
}

size_t axisOf(Value v, int64_t axis) { return axis < 0 ? axis + shapeOf(v).size() : axis; }

/// The view of \p heads in a tensor of their own.
HeadView wholeOf(Value heads) {
  HeadView view;
  for (auto [stride, own, extent] : llvm::zip(view.strides, rowMajorStrides(shapeOf(heads)), shapeOf(heads)))
    stride = extent == 1 ? 0 : own;
  return view;
}

/// \p view of a tensor of shape \p from where \p to has put that tensor. Nothing where an index walks over the end of
/// an axis.
std::optional<HeadView> moved(const HeadView &view, ArrayRef<int64_t> heads, ArrayRef<int64_t> from,
                              const Placement &to) {
  SmallVector<int64_t> own = rowMajorStrides(from), room(from);
  HeadView result;
  result.first = to.first;
  int64_t rest = view.first;
  for (auto [axis, stride] : llvm::enumerate(own)) {
    room[axis] -= rest / stride;
    result.first += rest / stride * to.strides[axis];
    rest %= stride;
  }
  for (size_t index = 0; index < heads.size(); ++index) {
    if (heads[index] == 1)
      continue;
    auto walksAlong = [&](size_t axis) {
      int64_t step = view.strides[index] / own[axis];
      return step > 0 && view.strides[index] % own[axis] == 0 && step * (heads[index] - 1) < room[axis];
    };
    size_t axis = 0;
    while (axis < own.size() && !walksAlong(axis))
      ++axis;
    if (axis == own.size())
      return std::nullopt;
    int64_t step = view.strides[index] / own[axis];
    room[axis] -= step * (heads[index] - 1);
    result.strides[index] = step * to.strides[axis];
  }
  return result;
}

/// Whether \p view is \p part of a tensor [B, T, count * H * D] with as many elements as \p holder.
bool isPart(const HeadView &view, ArrayRef<int64_t> heads, PackedPart part, Value holder) {
  int64_t joined = heads[1] * heads[3], row = part.count * joined;
  if (view.first != part.index * joined || elementCount(holder) != heads[0] * heads[2] * row)
    return false;
  const int64_t expected[] = {heads[2] * row, heads[3], row, 1};
  for (size_t index = 0; index < heads.size(); ++index)
    if (heads[index] != 1 && view.strides[index] != expected[index])
      return false;
  return true;
}

/// Where a transpose takes the elements of its result from, in its operand.
Placement transposedFrom(TransposeOp transpose) {
  SmallVector<int64_t> source = rowMajorStrides(shapeOf(transpose.getX()));
  Placement result;
  for (int64_t axis : transpose.getPermutation())
    result.strides.push_back(source[axis]);
  return result;
}

/// Where it puts the elements of its operand.
Placement transposedTo(TransposeOp transpose) {
  SmallVector<int64_t> target = rowMajorStrides(shapeOf(transpose.getY()));
  Placement result{0, SmallVector<int64_t>(target.size())};
  for (auto [index, axis] : llvm::enumerate(transpose.getPermutation()))
    result.strides[axis] = target[index];
  return result;
}

/// Where the elements of \p result lie in the operand of the operation that takes them from it. Nothing for other
/// operations.
std::optional<Placement> placeInOperand(OpResult result) {
  Operation *op = result.getOwner();
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return transposedFrom(transpose);
  if (auto slice = dyn_cast<SliceOp>(op)) {
    Placement place{0, rowMajorStrides(shapeOf(slice.getX()))};
    for (auto [start, stride] : llvm::zip(slice.getStarts(), place.strides))
      place.first += start * stride;
    return place;
  }
  if (auto split = dyn_cast<SplitOp>(op)) {
    Placement place{0, rowMajorStrides(shapeOf(split.getX()))};
    size_t axis = axisOf(split.getX(), split.getAxis());
    for (int64_t size : split.getSizes().take_front(result.getResultNumber()))
      place.first += size * place.strides[axis];
    return place;
  }
  return std::nullopt;
}

/// Where \p use puts its value's elements in the only result of its operation. Nothing for operations that do more.
std::optional<Placement> placeInResult(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return transposedTo(transpose);
  if (auto concat = dyn_cast<ConcatOp>(op)) {
    Placement place{0, rowMajorStrides(shapeOf(concat.getY()))};
    size_t axis = axisOf(concat.getY(), concat.getAxis());
    for (Value before : concat.getInputs().take_front(use.getOperandNumber()))
      place.first += shapeOf(before)[axis] * place.strides[axis];
    return place;
  }
  return std::nullopt;
}

} // namespace

Value packedSourceOf(Value heads, PackedPart part) {
  SmallVector<int64_t> extents(shapeOf(heads));
  HeadView view = wholeOf(heads);
  Value holder = heads;
  while (!isPart(view, extents, part, holder)) {
    auto result = dyn_cast<OpResult>(holder);
    if (!result)
      return Value();
    if (!isa<ReshapeOp>(result.getOwner())) {
      std::optional<Placement> place = placeInOperand(result);
      std::optional<HeadView> next = place ? moved(view, extents, shapeOf(holder), *place) : std::nullopt;
      if (!next)
        return Value();
      view = *next;
    }
    holder = result.getOwner()->getOperand(0);
  }
  return holder;
}

Value packedCopyOf(Value heads, PackedPart part) {
  SmallVector<int64_t> extents(shapeOf(heads));
  HeadView view = wholeOf(heads);
  Value holder = heads;
  while (!isPart(view, extents, part, holder)) {
    if (!holder.hasOneUse())
      return Value();
    OpOperand &use = *holder.use_begin();
    if (!isa<ReshapeOp>(use.getOwner())) {
      std::optional<Placement> place = placeInResult(use);
      std::optional<HeadView> next = place ? moved(view, extents, shapeOf(holder), *place) : std::nullopt;
      if (!next)
        return Value();
      view = *next;
    }
    holder = use.getOwner()->getResult(0);
  }
  return holder;
}

} // namespace mpc
