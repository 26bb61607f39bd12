// Cells, their layers, and the operations that Construct is written in.
#pragma once

#include "frontend/graph/cell.h"
#include "frontend/graph/context.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/tap.h"
#include "frontend/graph/tensor.h"
#include "frontend/nn/activations.h"
#include "frontend/nn/clip.h"
#include "frontend/nn/embedding.h"
#include "frontend/nn/layers.h"
#include "frontend/nn/learning_rate.h"
#include "frontend/nn/loss.h"
#include "frontend/nn/optimizers.h"
#include "frontend/nn/sequence_layers.h"
#include "frontend/nn/train_step.h"
