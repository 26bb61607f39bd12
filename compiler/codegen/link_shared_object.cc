#include "compiler/codegen/link_shared_object.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace mpc::codegen {

static constexpr llvm::StringRef Linkers[] = {"ld.lld-22", "ld.lld", "ld"};

static llvm::Expected<std::string> findLinker() {
  for (llvm::StringRef Name : Linkers)
    if (llvm::ErrorOr<std::string> Path = llvm::sys::findProgramByName(Name))
      return *Path;
  return llvm::createStringError("saving generated code for the CPU takes a linker; found none of " +
                                 llvm::join(llvm::ArrayRef(Linkers), ", ") + " in PATH (install lld or binutils)");
}

static llvm::Error writeFile(llvm::StringRef Path, const std::vector<std::uint8_t> &Bytes) {
  std::error_code Code;
  llvm::raw_fd_ostream Out(Path, Code);
  if (!Code) {
    Out.write(reinterpret_cast<const char *>(Bytes.data()), Bytes.size());
    Out.close();
    Code = Out.error();
    Out.clear_error();
  }
  return Code ? llvm::createStringError(Code, "cannot write '" + Path + "': " + Code.message())
              : llvm::Error::success();
}

static std::string textOf(llvm::StringRef Path) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> Text = llvm::MemoryBuffer::getFile(Path);
  return Text ? (*Text)->getBuffer().trim().str() : std::string();
}

static llvm::Error runLinker(llvm::StringRef Linker, llvm::ArrayRef<std::string> Objects, llvm::StringRef Output,
                             llvm::StringRef Messages) {
  llvm::SmallVector<llvm::StringRef> Arguments = {
      Linker, "-shared", "-o", Output, "--build-id=none", "--hash-style=gnu", "-z", "now", "-z", "noexecstack"};
  llvm::append_range(Arguments, Objects);
  std::optional<llvm::StringRef> Redirects[] = {llvm::StringRef(), Messages, Messages};
  std::string Reason;
  int Exit = llvm::sys::ExecuteAndWait(Linker, Arguments, std::nullopt, Redirects, 0, 0, &Reason);
  if (Exit == 0)
    return llvm::Error::success();
  if (Reason.empty())
    Reason = textOf(Messages);
  return llvm::createStringError(Linker + " failed (" + llvm::Twine(Exit) + "): " + Reason);
}

llvm::Expected<runtime::CodeBlob> linkSharedObject(llvm::ArrayRef<runtime::CodeBlob> Objects, llvm::StringRef Name) {
  llvm::Expected<std::string> Linker = findLinker();
  if (!Linker)
    return Linker.takeError();
  llvm::SmallString<128> Folder;
  if (std::error_code Code = llvm::sys::fs::createUniqueDirectory("mpc-link", Folder))
    return llvm::createStringError(Code, "cannot create a temporary folder: " + Code.message());
  llvm::scope_exit Remove([&] { llvm::sys::fs::remove_directories(Folder); });
  auto InFolder = [&](const llvm::Twine &File) { return (Folder + "/" + File).str(); };

  runtime::CodeBlob Result;
  Result.name = Name.str();
  Result.format = "elf";
  llvm::SmallVector<std::string> Paths;
  for (const runtime::CodeBlob &Object : Objects) {
    Paths.push_back(InFolder(llvm::Twine(Paths.size()) + ".o"));
    if (llvm::Error Failure = writeFile(Paths.back(), Object.bytes))
      return Failure;
    Result.kernels.insert(Result.kernels.end(), Object.kernels.begin(), Object.kernels.end());
  }
  std::string Output = InFolder("code.so");
  if (llvm::Error Failure = runLinker(*Linker, Paths, Output, InFolder("messages")))
    return Failure;
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> Linked = llvm::MemoryBuffer::getFile(Output);
  if (!Linked)
    return llvm::createStringError(Linked.getError(), *Linker + " wrote no '" + Output + "'");
  Result.bytes.assign((*Linked)->getBufferStart(), (*Linked)->getBufferEnd());
  return Result;
}

} // namespace mpc::codegen
