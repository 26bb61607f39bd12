// Generated code on disk, shared by processes.
#pragma once

#include "compiler/codegen/fusion_emitter.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mpc::codegen {

/// The code of one region: an object or PTX, and how it is called.
struct CompiledFusion {
  FusionCode code;
  std::vector<std::uint8_t> bytes;
};

/// A folder with one file a key. A file is written beside its place and renamed: a reader sees a whole entry or none.
/// An entry is used only if its checksum and its key are right; anything else counts as absent and is written anew.
///
/// Code that is read is run as machine code, and a checksum keeps no one out. So folder and entry must belong to the
/// process's effective user, and neither group nor others may write them. Any other folder is left alone: nothing is
/// found in it and nothing is stored there.
class CodeCache {
public:
  /// \p folder is made when the first entry is written; empty: no cache.
  explicit CodeCache(std::string folder) : folder(std::move(folder)) {}

  std::optional<CompiledFusion> find(llvm::StringRef key) const;
  /// Empty, or why the entry could not be written: the cache is a convenience, so that is no error.
  std::string store(llvm::StringRef key, const CompiledFusion &region) const;

  /// The path of the entry of \p key.
  std::string path(llvm::StringRef key) const;

private:
  std::string folder;
};

} // namespace mpc::codegen
