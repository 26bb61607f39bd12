// Results of a Program's instructions, in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/program.h"

namespace mpc::tools {

/// Where a result stands.
struct ResultPlace {
  std::size_t sequence = 0;  ///< index into Program::sequences
  std::size_t instruction = 0;
  std::size_t result = 0;  ///< index into Instruction::outputs
  std::int64_t run = 0;    ///< the run of the Program in its step, from 0
};

const runtime::Instruction& InstructionAt(const runtime::Program& program, const ResultPlace& place);
const runtime::Value& ValueAt(const runtime::Program& program, const ResultPlace& place);

/// "cpu", or "cuda sm_90" with the architecture that the code is for.
std::string DeviceOf(const runtime::Program& program);

/// What the instruction computes: its kernel, or the operations of a fused one.
std::string OperationOf(const runtime::Instruction& instruction);

/// "train_step, instruction 7 (conv2d in lenet5/conv1), phase forward".
std::string DescribeOperation(const runtime::Program& program, const ResultPlace& place);

/// "result 0, tensor<8x6x28x28xf16>"; behind that, where it lies in state, the entry's name.
std::string DescribeResult(const runtime::Program& program, const ResultPlace& place);

}  // namespace mpc::tools
