#include "compiler/codegen/ptx_resources.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <optional>

namespace mpc::codegen {

//===-- ptxas ----------------------------------------------------------------------------------------------------===//

llvm::Expected<std::string> findPtxas() {
  if (const char *given = std::getenv("MPC_PTXAS")) {
    if (llvm::sys::fs::can_execute(given))
      return std::string(given);
    return llvm::createStringError(llvm::formatv("MPC_PTXAS is '{0}', which is no program", given));
  }
  if (llvm::ErrorOr<std::string> found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  const char *cuda = std::getenv("CUDA_PATH");
  for (llvm::StringRef folder : {llvm::StringRef(cuda ? cuda : ""), llvm::StringRef("/usr/local/cuda")}) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, "bin", "ptxas");
    if (!folder.empty() && llvm::sys::fs::can_execute(path))
      return std::string(path);
  }
  return llvm::createStringError("no ptxas in PATH, CUDA_PATH/bin or /usr/local/cuda/bin; it comes with the CUDA "
                                 "toolkit, and MPC_PTXAS names another one");
}

/// A file of a unique name that is removed in the end.
static llvm::Expected<std::string> temporaryFile(llvm::StringRef suffix, llvm::FileRemover &remover) {
  llvm::SmallString<128> path;
  if (std::error_code failure = llvm::sys::fs::createTemporaryFile("mpc-kernel", suffix, path))
    return llvm::createStringError("no temporary file for ptxas: " + failure.message());
  remover.setFile(path);
  return std::string(path);
}

static llvm::Error writeFile(llvm::StringRef path, llvm::StringRef text) {
  std::error_code failure;
  llvm::raw_fd_ostream out(path, failure);
  if (!failure) {
    out << text;
    out.close();
    failure = out.error();
    out.clear_error();
  }
  if (failure)
    return llvm::createStringError("cannot write " + path + ": " + failure.message());
  return llvm::Error::success();
}

llvm::Expected<llvm::StringMap<KernelResources>> assembledResources(llvm::StringRef ptx, llvm::StringRef architecture,
                                                                    llvm::StringRef ptxas) {
  llvm::FileRemover removeInput, removeLog;
  llvm::Expected<std::string> input = temporaryFile("ptx", removeInput);
  if (!input)
    return input.takeError();
  llvm::Expected<std::string> log = temporaryFile("log", removeLog);
  if (!log)
    return log.takeError();
  if (llvm::Error failure = writeFile(*input, ptx))
    return failure;
  std::string arch = ("-arch=" + architecture).str(), message;
  llvm::StringRef arguments[] = {ptxas, "-v", arch, "-o", "/dev/null", *input};
  std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(), llvm::StringRef(*log), llvm::StringRef(*log)};
  int status = llvm::sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects, 0, 0, &message);
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> said = llvm::MemoryBuffer::getFile(*log);
  llvm::StringRef text = said ? (*said)->getBuffer() : llvm::StringRef();
  if (status != 0)
    return llvm::createStringError("ptxas for " + architecture + " failed: " + (message.empty() ? text : message));
  return parsePtxasLog(text);
}

// "32 registers" in "Used 32 registers, used 1 barriers, 1024 bytes smem": the number before \p unit, 0 where there is
// none.
static std::int64_t numberBefore(llvm::StringRef line, llvm::StringRef unit) {
  size_t at = line.find((" " + unit).str());
  if (at == llvm::StringRef::npos)
    return 0;
  llvm::StringRef before = line.take_front(at);
  std::int64_t number = 0;
  before.take_back(before.size() - (before.find_last_not_of("0123456789") + 1)).getAsInteger(10, number);
  return number;
}

llvm::StringMap<KernelResources> parsePtxasLog(llvm::StringRef log) {
  // The log has three lines for each kernel:
  // | ptxas info : Compiling entry function 'x' for 'sm_90'
  // | 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
  // | ptxas info : Used 32 registers, used 1 barriers, 1024 bytes smem, 400 bytes cmem[0]
  llvm::StringMap<KernelResources> kernels;
  KernelResources *current = nullptr;
  for (llvm::StringRef line : llvm::split(log, '\n')) {
    if (llvm::StringRef name = line.split("entry function '").second; !name.empty())
      current = &kernels[name.take_until([](char c) { return c == '\''; })];
    if (!current)
      continue;
    if (line.contains("bytes stack frame")) {
      current->stack_bytes = numberBefore(line, "bytes stack frame");
      current->spill_bytes = numberBefore(line, "bytes spill stores") + numberBefore(line, "bytes spill loads");
    } else if (line.contains("Used ")) {
      current->registers = numberBefore(line, "registers");
      current->shared_bytes = numberBefore(line, "bytes smem");
    }
  }
  return kernels;
}

//===-- PTX ------------------------------------------------------------------------------------------------------===//

llvm::StringMap<std::int64_t> instructionCounts(llvm::StringRef ptx) {
  llvm::StringMap<std::int64_t> counts;
  std::int64_t *count = nullptr;
  for (llvm::StringRef line : llvm::split(ptx, '\n')) {
    llvm::StringRef text = line.split("//").first.trim();
    if (llvm::StringRef entry = text.split(".entry ").second; !entry.empty())
      count = &counts[entry.take_until([](char c) { return c == '('; })];
    else if (line.starts_with("}"))
      count = nullptr;
    // Directives begin with a dot, labels end in a colon.
    else if (count && text.ends_with(";") && !text.starts_with("."))
      ++*count;
  }
  return counts;
}

} // namespace mpc::codegen
