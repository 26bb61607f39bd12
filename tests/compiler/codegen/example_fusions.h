// Four small regions and the code of them, for tests of what is done with generated code.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/codegen/code_generator.h"
#include "tests/compiler/op_case_module.h"

namespace mpc::codegen {

/// What `value` holds; a failure with its error, and nothing, where it holds none.
template <typename T>
T Good(llvm::Expected<T> value) {
  if (value) return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

/// The text of a region that adds and then does `op`.
inline std::string ExampleFusion(const std::string& name, const std::string& op, const std::string& attributes = "") {
  return "  %" + name + " = mpc.fusion(%x, %b) {\n  ^bb0(%a: tensor<4x8xf32>, %c: tensor<8xf32>):\n" +
         "    %s = mpc.add %a, %c " + attributes +
         " : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>\n    %t = mpc." + op +
         " %s : (tensor<4x8xf32>) -> tensor<4x8xf32>\n    mpc.yield %t : tensor<4x8xf32>\n" +
         "  } : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>\n";
}

/// Regions of a function. Two of the four compute the same.
class ExampleFusions {
 public:
  ExampleFusions() : context_(MakeContext()) {
    module_ = ParseModule(
        *context_, "func.func @f(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {\n" +
                       ExampleFusion("p", "relu") + ExampleFusion("q", "relu", "{note = \"elsewhere\"}") +
                       ExampleFusion("r", "neg") + ExampleFusion("s", "tanh") + "  return %s : tensor<4x8xf32>\n}");
  }
  mlir::func::FuncOp function() { return *module_->getOps<mlir::func::FuncOp>().begin(); }
  llvm::SmallVector<FusionOp> all() { return llvm::to_vector(function().getOps<FusionOp>()); }

 private:
  std::unique_ptr<mlir::MLIRContext> context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
};

inline CodeTarget Host() { return Good(hostTarget()); }

/// The code of ExampleFusions.
inline GeneratedCode Generate(const std::string& cache_dir, unsigned threads = 2) {
  ExampleFusions regions;
  return Good(generateCode(regions.function(), Host(), {cache_dir, threads}));
}

inline std::vector<std::vector<std::uint8_t>> BytesOf(const GeneratedCode& code) {
  std::vector<std::vector<std::uint8_t>> bytes;
  for (const runtime::CodeBlob& blob : code.blobs) bytes.push_back(blob.bytes);
  return bytes;
}

}  // namespace mpc::codegen
