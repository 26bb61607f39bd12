// Random training steps, for tests that compare what passes make of them.
#pragma once

#include <cstdint>

#include "compiler/module/graph_builder.h"

namespace mpc::test {

/// A step `@train_step` whose network has about a dozen operations: convolutions, matrix products, normalisation,
/// pooling, activations, arithmetic, data movement, reductions, the user's casts and ToFloat pins, then one of three
/// losses (one written by hand). Its results are the loss and the gradient of every parameter. Equal seeds give equal
/// graphs.
compiler::Module MakeRandomGraph(std::uint64_t seed);

/// What the network of a training step is made of.
enum class StepKind {
  kMixed,    ///< that of MakeRandomGraph
  kFusible,  ///< that of MakeRandomFusibleGraph
  kHeads,    ///< self-attention whose heads come from one product, and work on rows
  kWide,     ///< convolutions of 32 channels and more: a frozen one with gelu at times, then some with batch_norm_train
};

/// A step whose results are the loss, every new parameter and every new slot: one of six optimizers updates what the
/// network reads. Gradients are clipped by their norm at times.
compiler::Module MakeRandomTrainingStep(std::uint64_t seed, StepKind kind);

/// The same as MakeRandomGraph of operations that fusion puts into regions, with a few matrix products between them:
/// chains and diamonds of element-wise work, broadcasts of rows and columns, casts, reductions along both axes,
/// normalisation, softmax. Tensors have 2 to `most_rows` rows of 1 to 40 elements.
compiler::Module MakeRandomFusibleGraph(std::uint64_t seed, int most_rows = 24);

}  // namespace mpc::test
