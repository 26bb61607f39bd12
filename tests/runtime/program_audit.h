// What a compiled Program promises to whoever records it: order and storage, checked apart from the planner.
#pragma once

#include <string>
#include <vector>

#include "runtime/executable.h"
#include "runtime/program.h"

namespace mpc::runtime {

/// Walks through `program` in its order without computing: a write marks its bytes of the arena, and its state entry,
/// with its writer, a read expects the mark of the value that it names. So it finds a reader before its writer, state
/// that is written before its last reader, values that are live together in the same bytes, workspaces over live values
/// or smaller than what `device` asks for, and kernels that would write over what they still read. Empty: all is well.
/// A value that no instruction writes is another shape of one that lies in the same bytes, or of an input. A sequence
/// that an instruction runs several times is walked through twice.
std::vector<std::string> AuditProgram(const Program& program, const Device& device);

}  // namespace mpc::runtime
