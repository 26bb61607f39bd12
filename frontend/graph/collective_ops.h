// What the processes of a group compute of each other's tensors.
//
// All processes call the same functions in the same order, with tensors of one type and one shape. The group is that of
// distributed::Init when a Cell is traced, and a Program of it runs in groups of that size alone. Its size is a power
// of two. Without a group a process is rank 0 of one. Results have the same bits in all processes, but for those of
// ReduceScatter. Gradients go through all of them: a process gets the derivative of the sum of all processes' losses.
//
// Errors: a step that a Model runs in one process alone (Eval, Predict); the types below; a group of another size than
// 2, 4, 8, .... A process that does not come ends the others' wait with an error.
#pragma once

#include <cstdint>

#include "frontend/graph/tensor.h"

namespace mpc::ops {

/// How AllReduce and ReduceScatter combine elements; MindSpore's ReduceOp.
enum class ReduceOp : std::uint8_t {
  kSum,   ///< in a balanced binary tree over ranks, every addition rounded to the type of the elements
  kMean,  ///< the sum of each process's elements times 1 / size, so that a mean of finite elements is finite
  kMax,   ///< the largest; a NaN wins
};

/// The elements of all processes, combined; of x's shape. x is floating, or i32 for kMax.
Tensor AllReduce(const Tensor& x, ReduceOp op = ReduceOp::kSum);

/// The tensors of all processes one after the other along axis 0, in the order of ranks: [n, ...] -> [size * n, ...].
/// A scalar is taken for [1]. x has any type.
Tensor AllGather(const Tensor& x);

/// This process's part of AllReduce(x, op) along axis 0: [size * n, ...] -> [n, ...], of which rank r has rows r * n to
/// (r + 1) * n - 1. x is floating. An extent that `size` does not divide is an error.
Tensor ReduceScatter(const Tensor& x, ReduceOp op = ReduceOp::kSum);

/// The tensor of rank `root_rank` in every process. x is floating, i32 or i64. The processes get its bits, but a NaN
/// may become another NaN. Another rank than 0 to size - 1 is an error.
Tensor Broadcast(const Tensor& x, int root_rank = 0);

}  // namespace mpc::ops
