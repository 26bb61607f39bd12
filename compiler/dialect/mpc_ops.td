// Every operation of the dialect, in the order of the generated reference.
#ifndef MPC_OPS_TD
#define MPC_OPS_TD

include "compiler/dialect/mpc_elementwise_ops.td"
include "compiler/dialect/mpc_activation_ops.td"
include "compiler/dialect/mpc_movement_ops.td"
include "compiler/dialect/mpc_nn_ops.td"
include "compiler/dialect/mpc_sequence_ops.td"
include "compiler/dialect/mpc_fusion_ops.td"
include "compiler/dialect/mpc_step_ops.td"
include "compiler/dialect/mpc_optimizer_ops.td"

#endif
