// Generated code on disk, shared by processes.
#pragma once

#include "compiler/codegen/region_emitter.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mpc::codegen {

/// The code of one region: an object or PTX, and how it is called.
struct CompiledRegion {
  RegionCode code;
  std::vector<std::uint8_t> bytes;
};

/// A folder with one file a key. A file is written beside its place and renamed: a reader sees a whole entry or none.
/// What is read is trusted only if its checksum and its key are right; anything else counts as absent and is
/// written anew.
class CodeCache {
public:
  /// \p Folder is made when the first entry is written; empty: no cache.
  explicit CodeCache(std::string Folder) : Folder(std::move(Folder)) {}

  std::optional<CompiledRegion> find(llvm::StringRef Key) const;
  /// Empty, or why the entry could not be written: the cache is a convenience, so that is no error.
  std::string store(llvm::StringRef Key, const CompiledRegion &Region) const;

  /// Where the entry of \p Key lies.
  std::string path(llvm::StringRef Key) const;

private:
  std::string Folder;
};

} // namespace mpc::codegen
