// Every operation of the dialect, in the order of the generated reference.
#ifndef MPC_OPS_TD
#define MPC_OPS_TD

include "compiler/dialect/elementwise/elementwise_ops.td"
include "compiler/dialect/activation/activation_ops.td"
include "compiler/dialect/integer/integer_ops.td"
include "compiler/dialect/movement/movement_ops.td"
include "compiler/dialect/nn/nn_ops.td"
include "compiler/dialect/nn/resize_ops.td"
include "compiler/dialect/sequence/sequence_ops.td"
include "compiler/dialect/fusion/fusion_ops.td"
include "compiler/dialect/step/collective_ops.td"
include "compiler/dialect/step/step_ops.td"
include "compiler/dialect/step/state_ops.td"
include "compiler/dialect/optimizer/optimizer_ops.td"

#endif
