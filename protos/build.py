"""Generate the Python code of the protobuf APIs: ``python protos/build.py`` or ``make protos``.

The files next to each ``.proto`` are ``*_pb2.py`` with its types ``*_pb2.pyi``, and ``*_pb2_grpc.py`` with its types
``*_pb2_grpc.pyi`` (for grpc.aio, which clients and servers here use). They are imported as
``five.protos.v1.<name>_pb2``, or ``five.protos.valve.<name>_pb2`` for the messages of Dota 2 and dotaservice. They are
never edited or committed.
"""

import re
import sys
import tempfile
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

ROOT = Path(__file__).resolve().parent
# Folder of .proto files -> package of the generated code.
PACKAGES = {"five/v1": "five.protos.v1", "valve": "five.protos.valve"}

# protoc writes imports relative to its -I folder; ours are below the package `five.protos`.
IMPORT = re.compile(r"^(from|import) (five\.v1|valve)\b", re.MULTILINE)

MULTI_CALLABLE = {
    (False, False): "UnaryUnaryMultiCallable",
    (False, True): "UnaryStreamMultiCallable",
    (True, False): "StreamUnaryMultiCallable",
    (True, True): "StreamStreamMultiCallable",
}


def sources(root: Path = ROOT) -> list[Path]:
    """Return the .proto files, sorted."""
    return sorted(path for folder in PACKAGES for path in (root / folder).glob("*.proto"))


def generated(root: Path = ROOT) -> list[Path]:
    """Return the generated files that every source has: messages and their types."""
    return [s.with_name(s.stem + suffix) for s in sources(root) for suffix in ("_pb2.py", "_pb2.pyi")]


def is_current(root: Path = ROOT) -> bool:
    """Return whether all generated files exist and are newer than every source and this generator."""
    newest = max(path.stat().st_mtime for path in [*sources(root), Path(__file__)])
    return all(path.exists() and path.stat().st_mtime >= newest for path in generated(root))


def _rewrite_imports(code: str) -> str:
    """Return generated code with imports from the packages where the generated files are."""
    return IMPORT.sub(lambda found: f"{found[1]} {PACKAGES[found[2].replace('.', '/')]}", code)


def _type_of(proto_name: str) -> str:
    """Convert ``.five.v1.ActRequest`` to ``ActRequest``. The RPCs use only messages of the same file."""
    return proto_name.rsplit(".", 1)[1]


def _grpc_types(descriptor: "FileDescriptorProto") -> str:
    """Return the types of a file's services as the text of a .pyi."""
    stem = Path(descriptor.name).stem
    package = PACKAGES[str(Path(descriptor.name).parent)]
    lines = [
        "from collections.abc import AsyncIterator, Awaitable",
        "from typing import Any",
        "",
        "import grpc",
        "import grpc.aio",
        "",
        f"from {package} import {stem}_pb2",
        "",
    ]
    for service in descriptor.service:
        stub = [f"class {service.name}Stub:", "    def __init__(self, channel: grpc.aio.Channel) -> None: ..."]
        servicer = [f"class {service.name}Servicer:"]
        for method in service.method:
            request = f"{stem}_pb2.{_type_of(method.input_type)}"
            response = f"{stem}_pb2.{_type_of(method.output_type)}"
            kind = MULTI_CALLABLE[method.client_streaming, method.server_streaming]
            stub.append(f"    {method.name}: grpc.aio.{kind}[{request}, {response}]")
            requests = f"AsyncIterator[{request}]" if method.client_streaming else request
            responses = f"AsyncIterator[{response}]" if method.server_streaming else f"Awaitable[{response}]"
            name = "request_iterator" if method.client_streaming else "request"
            servicer.append(f"    def {method.name}(self, {name}: {requests}, "
                            f"context: grpc.aio.ServicerContext[Any, Any]) -> {responses}: ...")
        lines += ["", *stub, "", *servicer, "",
                  f"def add_{service.name}Servicer_to_server("
                  f"servicer: {service.name}Servicer, server: grpc.aio.Server) -> None: ..."]
    return "\n".join(lines) + "\n"


def build(root: Path = ROOT) -> list[Path]:
    """Generate the code of every .proto below ``root``. Return the written files.

    Raises RuntimeError when protoc refuses a file (it prints the position), or when grpcio-tools is not installed.
    """
    try:
        from google.protobuf import descriptor_pb2
        from grpc_tools import protoc
    except ImportError as error:
        raise RuntimeError(f"grpcio-tools is needed to build the protos ({error}): "
                           "pip install grpcio-tools") from error
    files = [str(path.relative_to(root)) for path in sources(root)]
    if not files:
        raise RuntimeError(f"no .proto files in {root}: expected them in {' and '.join(PACKAGES)}")
    written: list[Path] = []
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        descriptors = out / "descriptors.binpb"
        include = resources.files("grpc_tools") / "_proto"
        code = protoc.main(["protoc", f"-I{root}", f"-I{include}", f"--python_out={out}", f"--pyi_out={out}",
                            f"--grpc_python_out={out}", f"--descriptor_set_out={descriptors}", *files])
        if code != 0:
            raise RuntimeError(f"protoc failed with code {code}; see its message above")
        for descriptor in descriptor_pb2.FileDescriptorSet.FromString(descriptors.read_bytes()).file:
            stub = out / descriptor.name.replace(".proto", "_pb2_grpc.py")
            if descriptor.service:
                stub.with_suffix(".pyi").write_text(_grpc_types(descriptor))
            else:
                stub.unlink(missing_ok=True)
        for path in sorted(path for folder in PACKAGES for path in out.glob(f"{folder}/*.py*")):
            target = root / path.relative_to(out)
            # Written to another file and renamed, so that a process that imports it sees the old file or the new one.
            temporary = target.with_name(target.name + ".new")
            temporary.write_text(_rewrite_imports(path.read_text()))
            temporary.replace(target)
            written.append(target)
    return written


if __name__ == "__main__":
    if "--if-needed" in sys.argv[1:] and is_current():
        sys.exit(0)
    try:
        print(f"protos: {len(build())} files generated in {ROOT}")
    except RuntimeError as problem:
        sys.exit(f"protos: {problem}")
