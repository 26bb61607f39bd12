// The public API in one header.
#pragma once

#include "mpc/amp.h"
#include "mpc/data.h"
#include "mpc/distributed.h"
#include "mpc/nn.h"
#include "mpc/train.h"
