// Workspaces that the libraries find aligned as an allocation of theirs would be.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mpc::cuda {

/// The alignment that the libraries expect. A Program aligns workspaces to less.
inline constexpr std::size_t kWorkspaceAlignment = 256;

/// The bytes to ask for, so that `bytes` are left behind AlignedWorkspace.
inline std::size_t PaddedWorkspace(std::size_t bytes) { return bytes == 0 ? 0 : bytes + kWorkspaceAlignment; }

inline void* AlignedWorkspace(void* workspace) {
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  return reinterpret_cast<void*>((address + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment);
}

}  // namespace mpc::cuda
