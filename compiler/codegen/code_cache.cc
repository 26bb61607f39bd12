#include "compiler/codegen/code_cache.h"

#include "runtime/atomic_file.h"
#include "runtime/checksum.h"
#include "runtime/file_content.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <sys/stat.h>
#include <unistd.h>

namespace mpc::codegen {

// An entry begins with the magic and the checksum of what follows. Then come the key, the workspace, the stages and the
// code. They are numbers of 64 bits, and texts with their length in front. The last digit of the magic is the version
// of this form.
static constexpr llvm::StringLiteral Magic = "mpccode1";

namespace {

class Writer {
public:
  void number(std::uint64_t Value) {
    char Bytes[8];
    llvm::support::endian::write64le(Bytes, Value);
    Out.append(Bytes, 8);
  }
  void text(llvm::StringRef Text) {
    number(Text.size());
    Out += Text;
  }
  std::string take() { return std::move(Out); }

private:
  std::string Out;
};

/// Reads what Writer wrote; `complete` says whether that was there and nothing else.
class Reader {
public:
  explicit Reader(llvm::StringRef In) : In(In) {}
  std::uint64_t number() {
    if (In.size() < 8) {
      Failed = true;
      return 0;
    }
    std::uint64_t Value = llvm::support::endian::read64le(In.data());
    In = In.drop_front(8);
    return Value;
  }
  llvm::StringRef text() {
    std::uint64_t Size = number();
    if (Size > In.size()) {
      Failed = true;
      return {};
    }
    llvm::StringRef Text = In.take_front(Size);
    In = In.drop_front(Size);
    return Text;
  }
  bool failed() const { return Failed; }
  bool complete() const { return !Failed && In.empty(); }

private:
  llvm::StringRef In;
  bool Failed = false;
};

} // namespace

static std::string encode(llvm::StringRef Key, const CompiledRegion &Region) {
  Writer Content;
  Content.text(Key);
  Content.number(Region.code.workspace_bytes);
  Content.number(Region.code.stages.size());
  for (const Stage &Each : Region.code.stages) {
    Content.text(Each.function);
    Content.number(Each.blocks);
    Content.number(Each.threads);
    Content.number(Each.shared_bytes);
  }
  Content.text(llvm::StringRef(reinterpret_cast<const char *>(Region.bytes.data()), Region.bytes.size()));
  return Content.take();
}

static std::optional<CompiledRegion> decode(llvm::StringRef Key, llvm::StringRef Bytes) {
  Reader Content(Bytes);
  if (Content.text() != Key)
    return std::nullopt;
  CompiledRegion Region;
  Region.code.workspace_bytes = Content.number();
  for (std::uint64_t Left = Content.number(); Left > 0 && !Content.failed(); --Left) {
    Stage &Each = Region.code.stages.emplace_back();
    Each.function = Content.text().str();
    Each.blocks = static_cast<std::int64_t>(Content.number());
    Each.threads = static_cast<unsigned>(Content.number());
    Each.shared_bytes = static_cast<unsigned>(Content.number());
  }
  llvm::StringRef Code = Content.text();
  Region.bytes.assign(Code.begin(), Code.end());
  if (!Content.complete())
    return std::nullopt;
  return Region;
}

static std::uint64_t checksumOf(llvm::StringRef Content) {
  runtime::Checksum Checksum;
  Checksum.Add(Content.data(), Content.size());
  return Checksum.value();
}

/// Why others could have changed what lies at \p Path, for a message: "others may write it (mode 0777)". Empty: they
/// could not, or nothing is there.
static std::string whoElseMayWrite(const std::string &Path) {
  struct stat Found {};
  if (::stat(Path.c_str(), &Found) != 0)
    return "";
  std::string Reason;
  llvm::raw_string_ostream Out(Reason);
  if (Found.st_uid != ::geteuid())
    Out << "it belongs to user " << Found.st_uid << ", not to user " << ::geteuid();
  else if ((Found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    Out << "others may write it (mode " << llvm::format("%04o", Found.st_mode & 07777) << ")";
  return Reason;
}

std::string CodeCache::path(llvm::StringRef Key) const {
  llvm::SmallString<128> Path(Folder);
  llvm::sys::path::append(Path, Key + ".code");
  return std::string(Path);
}

std::optional<CompiledRegion> CodeCache::find(llvm::StringRef Key) const {
  if (Folder.empty() || !whoElseMayWrite(Folder).empty() || !whoElseMayWrite(path(Key)).empty())
    return std::nullopt;
  absl::StatusOr<std::vector<std::uint8_t>> File = runtime::ReadFileContent(path(Key));
  if (!File.ok())
    return std::nullopt;
  llvm::StringRef Bytes(reinterpret_cast<const char *>(File->data()), File->size());
  if (!Bytes.consume_front(Magic) || Bytes.size() < 8)
    return std::nullopt;
  llvm::StringRef Content = Bytes.drop_front(8);
  if (llvm::support::endian::read64le(Bytes.data()) != checksumOf(Content))
    return std::nullopt;
  return decode(Key, Content);
}

std::string CodeCache::store(llvm::StringRef Key, const CompiledRegion &Region) const {
  if (Folder.empty())
    return "";
  if (std::error_code Code =
          llvm::sys::fs::create_directories(Folder, /*IgnoreExisting=*/true, llvm::sys::fs::owner_all))
    return "cannot create the folder '" + Folder + "': " + Code.message();
  if (std::string Reason = whoElseMayWrite(Folder); !Reason.empty())
    return "the folder '" + Folder + "' is not trusted with machine code: " + Reason;
  std::string Content = encode(Key, Region);
  std::string Entry = Magic.str();
  Entry.resize(Entry.size() + 8);
  llvm::support::endian::write64le(Entry.data() + Magic.size(), checksumOf(Content));
  // Syncing would take longer than generating. A file that a crash of the machine leaves has a wrong checksum.
  absl::Status Written = runtime::WriteTextFile(path(Key), Entry + Content, {.sync = false, .permissions = 0600});
  return Written.ok() ? "" : std::string(Written.message());
}

} // namespace mpc::codegen
