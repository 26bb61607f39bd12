// Programs in files, and how they are run without a Model: docs/programs.md.
#pragma once

#include "frontend/state/package_state.h"
#include "runtime/executable.h"
#include "runtime/program_file.h"
#include "runtime/state_store.h"
