// Training: Model, callbacks, metrics, checkpoints, the profiler of precision.
#pragma once

#include "frontend/state/checkpoint.h"
#include "frontend/state/checkpoint_folder.h"
#include "frontend/state/name_map.h"
#include "frontend/train/callback.h"
#include "frontend/train/checkpoint_callback.h"
#include "frontend/train/metric.h"
#include "frontend/train/model.h"
#include "frontend/train/precision_profiler.h"
#include "frontend/train/request_exit.h"
