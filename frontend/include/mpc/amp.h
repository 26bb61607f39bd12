// Automatic mixed precision: levels, operation lists, scopes, loss scaling.
#pragma once

#include "frontend/amp/amp_scaler.h"
#include "frontend/amp/auto_cast.h"
#include "frontend/amp/grad_scaler.h"
#include "frontend/amp/initialize.h"
#include "frontend/graph/amp_options.h"
#include "frontend/graph/loss_scale.h"
