"""Messages of Chakra traces, decoded by protobuf: `traces.py QUESTION ANSWER`, of archives, and of what ranks send.

Names, numbers and types of fields are those of `schema/protobuf/et_def.proto` of MLCommons Chakra.
"""

import json
import sys
import tempfile
import zipfile
from collections import Counter
from importlib import import_module
from pathlib import Path

from google.protobuf.internal.decoder import _DecodeVarint32
from grpc_tools import protoc

DEFINITION = """
syntax = "proto3";
package ChakraProtoMsg;
message AttributeProto { string name = 1;
  oneof value { int32 int32_val = 7; int64 int64_val = 9; bool bool_val = 27; } }
enum NodeType { INVALID_NODE = 0; METADATA_NODE = 1; MEM_LOAD_NODE = 2; MEM_STORE_NODE = 3; COMP_NODE = 4;
  COMM_SEND_NODE = 5; COMM_RECV_NODE = 6; COMM_COLL_NODE = 7; }
message Node { uint64 id = 1; string name = 2; NodeType type = 3; repeated uint64 ctrl_deps = 4;
  repeated uint64 data_deps = 5; repeated AttributeProto attr = 10; }
message GlobalMetadata { string version = 1; }
"""


def messages(content, forms):
    """The messages of a trace, each after its length: the version, then nodes."""
    place, form = 0, forms.GlobalMetadata
    while place < len(content):
        size, place = _DecodeVarint32(content, place)
        message = form()
        message.ParseFromString(content[place : place + size])
        assert not message.FindInitializationErrors()
        yield message
        place, form = place + size, forms.Node


def told(path, forms):
    """Bytes from each rank to each, as senders and as receivers have it."""
    sent, received = Counter(), Counter()
    with zipfile.ZipFile(path) as archive:
        for rank in range(len(archive.namelist())):
            version, *nodes = messages(archive.read(f"trace.{rank}.et"), forms)
            numbers = {node.id for node in nodes}
            assert version.version
            assert len(numbers) == len(nodes)
            for node in nodes:
                values = {one.name: getattr(one, one.WhichOneof("value")) for one in node.attr}
                side = sent if node.type == forms.COMM_SEND_NODE else received
                side[f"{values['comm_src']} {values['comm_dst']} {values['comm_tag']}"] += values["comm_size"]
                assert {*node.data_deps} <= numbers
    return {"sent": sent, "received": received}


question, answer = sys.argv[1:]
with tempfile.TemporaryDirectory() as folder:
    Path(folder, "et.proto").write_text(DEFINITION, "utf-8")
    assert protoc.main(["protoc", f"-I{folder}", f"--python_out={folder}", "et.proto"]) == 0
    sys.path.insert(0, folder)
    forms = import_module("et_pb2")
    found = [told(path, forms) for path in json.loads(Path(question).read_text("utf-8"))]
Path(answer).write_text(json.dumps(found), "utf-8")
