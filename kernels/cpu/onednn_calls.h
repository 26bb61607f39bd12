// The building blocks of kernels on oneDNN: primitives with their arguments, changes of layout, an operand's way from
// storage to primitive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <dnnl.hpp>
#include <exception>
#include <optional>
#include <vector>

#include "kernels/cpu/blocked_copy.h"
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {

/// Hands out parts of a workspace.
class WorkspaceLayout {
 public:
  std::size_t Reserve(std::size_t bytes);
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

/// Memory without data of its own.
class BoundMemory {
 public:
  explicit BoundMemory(const dnnl::memory::desc& layout) : memory_(layout, OnednnEngine(), nullptr) {}

  dnnl_memory_t get() const { return memory_.get(); }
  void Bind(void* data) {
    // oneDNN clears the padding of blocked layouts when a handle is set; an unchanged one is left alone.
    if (data == data_) return;
    memory_.set_data_handle(data);
    data_ = data;
  }

 private:
  dnnl::memory memory_;
  void* data_ = nullptr;
};

/// A primitive and its arguments in the form of oneDNN's C interface: the C++ one builds its list on every call.
class PreparedCall {
 public:
  explicit PreparedCall(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  void Add(int argument, const BoundMemory& memory) { arguments_.push_back({argument, memory.get()}); }
  void Execute() const;

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// What the library throws on the threads of a loop, for the caller of the loop.
class FirstError {
 public:
  template <typename Function>
  void Catch(const Function& function) noexcept {
    try {
      function();
    } catch (...) {
      if (!is_set_.test_and_set()) error_ = std::current_exception();
    }
  }
  /// Behind the loop: throws the first error, if there was one.
  void Throw() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::atomic_flag is_set_;
  std::exception_ptr error_;
};

/// A change of layout between two bound memories, on the calling thread within a SerialLibrary.
class Reorder {
 public:
  Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  std::size_t scratchpad_bytes() const { return description_.scratchpad_desc().get_size(); }
  void Execute(void* from, void* to, void* scratchpad);

 private:
  dnnl::reorder::primitive_desc description_;
  BoundMemory from_;
  BoundMemory to_;
  BoundMemory scratchpad_;
  PreparedCall call_;
};

/// A change of layout in parts, along the outermost dimension of the result, on threads of our loops.
class ReorderInParts {
 public:
  ReorderInParts(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  std::size_t scratchpad_bytes() const { return scratchpad_bytes_; }
  void Execute(const void* from, void* to, std::byte* scratchpad);

 private:
  struct Part {
    Reorder reorder;
    std::size_t from_offset, to_offset, scratchpad_offset;  ///< bytes
  };

  /// Appends a part unless the library has no such layout.
  void Add(const dnnl::memory::desc& from, const dnnl::memory::desc& to, std::size_t from_offset,
           std::size_t to_offset);

  std::vector<Part> parts_;
  std::size_t scratchpad_bytes_ = 0;
};

/// y = activation(x), rounded once. Nothing is done where x is y and there is no activation.
void ActivateAndRound(Activation activation, Source x, Sink y, std::int64_t elements);

/// One operand or result: where it is converted and where it is reordered, if it has to be.
struct Stage {
  Stage(const Port& port, WorkspaceLayout& workspace);

  /// The reorder, and a place for the primitive's side of it.
  void AddReorder(const Port& port, bool towards_primitive, WorkspaceLayout& workspace);

  /// Converts an operand, unless it is stored as it is computed with; returns where it then is.
  void* Convert(const void* operand, std::byte* workspace) const;
  /// Convert, then the reorder; returns where the operand then is.
  void* Prepare(const void* operand, std::byte* workspace);

  int argument;
  DType storage;
  DType type;
  std::int64_t elements;
  BoundMemory memory;  ///< the primitive's argument
  std::optional<Reorder> reorder;
  std::size_t conversion_offset = 0;
  std::size_t packed_offset = 0;
  std::size_t scratchpad_offset = 0;
};

/// An operand on its way to the layout that primitives take: our own copy where there is one, else a conversion and
/// then the library's.
class LayoutChange {
 public:
  /// `port.stored` and `port.wanted` differ.
  LayoutChange(const Port& port, WorkspaceLayout& workspace);

  void Execute(const void* operand, void* to, std::byte* workspace);

 private:
  std::optional<BlockedCopy> copy_;
  std::optional<Stage> stage_;
  std::optional<ReorderInParts> reorder_;
  std::size_t scratchpad_offset_ = 0;
};

}  // namespace mpc::cpu
