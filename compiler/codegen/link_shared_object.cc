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

static constexpr llvm::StringRef linkers[] = {"ld.lld-22", "ld.lld", "ld"};

static llvm::Expected<std::string> findLinker() {
  for (llvm::StringRef name : linkers)
    if (llvm::ErrorOr<std::string> path = llvm::sys::findProgramByName(name))
      return *path;
  return llvm::createStringError("saving generated code for the CPU takes a linker; found none of " +
                                 llvm::join(llvm::ArrayRef(linkers), ", ") + " in PATH (install lld or binutils)");
}

static llvm::Error writeFile(llvm::StringRef path, const std::vector<std::uint8_t> &bytes) {
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (!code) {
    out.write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    out.close();
    code = out.error();
    out.clear_error();
  }
  return code ? llvm::createStringError(code, "cannot write '" + path + "': " + code.message())
              : llvm::Error::success();
}

static std::string textOf(llvm::StringRef path) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> text = llvm::MemoryBuffer::getFile(path);
  return text ? (*text)->getBuffer().trim().str() : std::string();
}

static llvm::Error runLinker(llvm::StringRef linker, llvm::ArrayRef<std::string> objects, llvm::StringRef output,
                             llvm::StringRef messages) {
  llvm::SmallVector<llvm::StringRef> arguments = {
      linker, "-shared", "-o", output, "--build-id=none", "--hash-style=gnu", "-z", "now", "-z", "noexecstack"};
  llvm::append_range(arguments, objects);
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), messages, messages};
  std::string reason;
  int exit = llvm::sys::ExecuteAndWait(linker, arguments, std::nullopt, redirects, 0, 0, &reason);
  if (exit == 0)
    return llvm::Error::success();
  if (reason.empty())
    reason = textOf(messages);
  return llvm::createStringError(linker + " failed (" + llvm::Twine(exit) + "): " + reason);
}

llvm::Expected<runtime::CodeBlob> linkSharedObject(llvm::ArrayRef<runtime::CodeBlob> objects, llvm::StringRef name) {
  llvm::Expected<std::string> linker = findLinker();
  if (!linker)
    return linker.takeError();
  llvm::SmallString<128> folder;
  if (std::error_code code = llvm::sys::fs::createUniqueDirectory("mpc-link", folder))
    return llvm::createStringError(code, "cannot create a temporary folder: " + code.message());
  llvm::scope_exit remove([&] { static_cast<void>(llvm::sys::fs::remove_directories(folder)); });
  auto inFolder = [&](const llvm::Twine &file) { return (folder + "/" + file).str(); };

  runtime::CodeBlob result;
  result.name = name.str();
  result.format = "elf";
  llvm::SmallVector<std::string> paths;
  for (const runtime::CodeBlob &object : objects) {
    paths.push_back(inFolder(llvm::Twine(paths.size()) + ".o"));
    if (llvm::Error failure = writeFile(paths.back(), object.bytes))
      return failure;
    result.kernels.insert(result.kernels.end(), object.kernels.begin(), object.kernels.end());
  }
  std::string output = inFolder("code.so");
  if (llvm::Error failure = runLinker(*linker, paths, output, inFolder("messages")))
    return failure;
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> linked = llvm::MemoryBuffer::getFile(output);
  if (!linked)
    return llvm::createStringError(linked.getError(), *linker + " wrote no '" + output + "'");
  result.bytes.assign((*linked)->getBufferStart(), (*linked)->getBufferEnd());
  return result;
}

} // namespace mpc::codegen
