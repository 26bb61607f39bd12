// Training in several processes: the group of processes, and how they share the work.
#pragma once

#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/distributed/distributed.h"
