"""Speaks the Language Server Protocol with mpc-lsp-server: initialize, open a file with an error, shut down."""
import json
import subprocess
import sys

TIMEOUT_SECONDS = 60
DAMAGED = """func.func @f(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = mpc.matmul %x, %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
"""
MESSAGES = [
    {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}},
    {"method": "initialized", "params": {}},
    {"method": "textDocument/didOpen",
     "params": {"textDocument": {"uri": "test:///f.mlir", "languageId": "mlir", "version": 1, "text": DAMAGED}}},
    {"id": 2, "method": "shutdown", "params": None},
    {"method": "exit", "params": None},
]


def framed(message):
    body = json.dumps({"jsonrpc": "2.0", **message})
    return "Content-Length: %d\r\n\r\n%s" % (len(body), body)


def unframed(text):
    """The messages of a stream of frames."""
    messages = []
    while "Content-Length:" in text:
        header, _, rest = text.partition("\r\n\r\n")
        length = int(header.split("Content-Length:")[1].split()[0])
        messages.append(json.loads(rest[:length]))
        text = rest[length:]
    return messages


done = subprocess.run([sys.argv[1]], input="".join(framed(message) for message in MESSAGES).encode(),
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS, check=False)
for answer in unframed(done.stdout.decode()):
    if answer.get("id") == 1:
        print("server: " + answer["result"]["serverInfo"]["name"])
        print("hover: %s" % answer["result"]["capabilities"].get("hoverProvider"))
    for diagnostic in answer.get("params", {}).get("diagnostics", []):
        print("diagnostic: " + diagnostic["message"])
print("exit status %d" % done.returncode)
