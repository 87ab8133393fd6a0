# Runs hoist's raw path against the mock of driver and GPU that tinygrad's repository has (test/mockgpu/nv), in one process, so that
# addresses are the same for both. What that mock does not know is added here; launch descriptors are read by what NVIDIA's class
# headers say, field by field, and every field has to hold what the launch says. SPDX-License-Identifier: MIT OR Apache-2.0
#
#   HOIST_TINYGRAD=CHECKOUT HOIST_OPEN_GPU_DOC=CHECKOUT python3 mock.py LIBRARY GENERATION FIXTURES
#
# CHECKOUT of tinygrad/tinygrad, and of NVIDIA/open-gpu-doc for the headers of launch descriptors (classes/compute/*qmd.h).

import ctypes, json, os, re, sys

sys.path.insert(0, os.environ["HOIST_TINYGRAD"])
try:
  from tinygrad.runtime.autogen import nv_570 as nv
  import test.mockgpu.nv.nvgpu as nvgpu
except Exception:
  # its PTX emulator is a library that may not be there, and is not needed
  import types
  helpers = types.ModuleType("test.mockgpu.helpers")
  helpers.ptx_run = None
  sys.modules["test.mockgpu.helpers"] = helpers
  from tinygrad.runtime.autogen import nv_570 as nv
  import test.mockgpu.nv.nvgpu as nvgpu
import test.mockgpu.nv.nvdriver as nvdriver

library, generation, fixtures = sys.argv[1:4]

# Classes: usermode, channel, compute, copy; SM version; header of the launch descriptor, its prefix, bytes.
GENERATIONS = {
  "ampere": ((0xc561, 0xc56f, 0xc6c0, 0xc6b5), 0x800, "clc6c0qmd.h", "NVC6C0_QMDV03_00_", 256),
  "ampere_86": ((0xc561, 0xc56f, 0xc7c0, 0xc7b5), 0x806, "clc7c0qmd.h", "NVC7C0_QMDV03_00_", 256),
  "ada": ((0xc561, 0xc56f, 0xc9c0, 0xc7b5), 0x809, "clc6c0qmd.h", "NVC6C0_QMDV03_00_", 256),
  "hopper": ((0xc661, 0xc86f, 0xcbc0, 0xc8b5), 0x900, "clcbc0qmd.h", "NVCBC0_QMDV04_00_", 384),
  "blackwell": ((0xc661, 0xc96f, 0xcdc0, 0xc9b5), 0xa00, "clcdc0qmd.h", "NVCDC0_QMDV05_00_", 384),
  "blackwell_12": ((0xc761, 0xca6f, 0xcec0, 0xcab5), 0xc00, "clcec0qmd.h", "NVCEC0_QMDV05_00_", 384),
}
(usermode, channel, compute, copy), sm_version, header, prefix, qmd_size = GENERATIONS[generation]
# what the mock knows instead
INSTEAD = {usermode: nv.TURING_USERMODE_A, channel: nv.AMPERE_CHANNEL_GPFIFO_A, compute: nv.ADA_COMPUTE_A, copy: nv.AMPERE_DMA_COPY_B,
           nv.NV01_MEMORY_LOCAL_USER: nv.NV1_MEMORY_USER, nv.NV01_MEMORY_SYSTEM: nv.NV1_MEMORY_SYSTEM}

def fields():
  """Every field of the launch descriptor: name, lowest bit, number of bits."""
  path = os.path.join(os.environ["HOIST_OPEN_GPU_DOC"], "classes/compute", header)
  found = {}
  for name, index, bits in re.findall(r"#define " + prefix + r"(\w+?)(\(i\))?\s+MW\((.*)\)\s*$", open(path).read(), re.M):
    for i in range(8) if index else [None]:
      high, low = (eval(part, {"i": i}) for part in re.match(r"\(?(.*?)\)?:\(?(.*?)\)?$", bits.replace("(i)", "i")).groups())
      found[name if i is None else f"{name}[{i}]"] = (low, high - low + 1)
  assert len(found) > 100, f"{path}: {len(found)} fields"
  return found

FIELDS = fields()

def read_fields(address):
  block = int.from_bytes(ctypes.string_at(address, qmd_size), "little")
  return {name: block >> low & (1 << width) - 1 for name, (low, width) in FIELDS.items()}

SHIFT = {"PROGRAM_ADDRESS": 4, "SHARED_MEMORY_SIZE": 7, "SHADER_LOCAL_MEMORY_HIGH_SIZE": 4} if qmd_size == 384 and prefix[2:4] in ("CD", "CE") else {}
BANK_SHIFT = 0 if qmd_size == 256 else 6

def expected_fields(launch, next_address):
  """What each field has to hold; all others are 0."""
  major = {"NVC6": 3, "NVC7": 3, "NVCB": 4, "NVCD": 5, "NVCE": 5}[prefix[:4]]
  fields = {"QMD_MAJOR_VERSION": major, "API_VISIBLE_CALL_LIMIT": 1, "CWD_MEMBAR_TYPE": 1, "INVALIDATE_SHADER_DATA_CACHE": 1,
            "INVALIDATE_INSTRUCTION_CACHE": 1, "INVALIDATE_SHADER_CONSTANT_CACHE": 1}
  if major == 3: fields["SM_GLOBAL_CACHING_ENABLE"] = 1
  else: fields["QMD_TYPE"] = 3 if launch["cluster"] else 2
  def shifted(name, value, suffix=""):
    shift = SHIFT.get(name, 0)
    assert value % (1 << shift) == 0, name
    return (f"{name}{suffix}_SHIFTED{shift}" if shift else f"{name}{suffix}"), value >> shift
  def wide(name, value):
    key, value = shifted(name, value, "_LOWER")
    fields[key], fields[key.replace("_LOWER", "_UPPER")] = value & 0xffffffff, value >> 32
  wide("PROGRAM_ADDRESS", launch["program"])
  fields["REGISTER_COUNT_V" if major == 3 else "REGISTER_COUNT"] = launch["registers"]
  fields["BARRIER_COUNT"] = launch["barriers"]
  key, value = shifted("SHARED_MEMORY_SIZE", launch["shared"])
  fields[key] = value
  key, value = shifted("SHADER_LOCAL_MEMORY_HIGH_SIZE", launch["local"])
  fields[key] = value
  # NVK's configurations, KiB / 4 + 1
  sizes = [0, 8, 16, 32, 64, 100] if sm_version in (0x806, 0x809, 0xc00) else [0, 8, 16, 32, 64, 100, 132, 164] + ([196, 228] if sm_version >= 0x900 else [])
  least = next(size for size in sizes if size * 1024 >= launch["shared"])
  fields["MIN_SM_CONFIG_SHARED_MEM_SIZE"] = fields["TARGET_SM_CONFIG_SHARED_MEM_SIZE"] = least // 4 + 1
  fields["MAX_SM_CONFIG_SHARED_MEM_SIZE"] = sizes[-1] // 4 + 1
  grid = "CTA_RASTER" if major == 3 else "GRID"
  for side, size in zip(["WIDTH", "HEIGHT", "DEPTH"], launch["grid"]): fields[f"{grid}_{side}"] = size
  for side, size in enumerate(launch["block"]): fields[f"CTA_THREAD_DIMENSION{side}"] = size
  if launch["cluster"]:
    for side, size in zip(["WIDTH", "HEIGHT", "DEPTH"], launch["cluster"]): fields[f"GPC_CGA_{side}"] = size
  suffix = f"_SHIFTED{BANK_SHIFT}" if BANK_SHIFT else ""
  for index, (address, size) in launch["banks"].items():
    address >>= BANK_SHIFT
    fields[f"CONSTANT_BUFFER_VALID[{index}]"] = fields[f"CONSTANT_BUFFER_INVALIDATE[{index}]"] = 1
    fields[f"CONSTANT_BUFFER_ADDR_LOWER{suffix}[{index}]"] = address & 0xffffffff
    fields[f"CONSTANT_BUFFER_ADDR_UPPER{suffix}[{index}]"] = address >> 32
    fields[f"CONSTANT_BUFFER_SIZE_SHIFTED4[{index}]"] = -(-size // 16)
  if next_address:
    dependent = {"ENABLE": 1, "ACTION": 1, "PREFETCH": 1}
    for name, value in dependent.items():
      fields["DEPENDENT_QMD_" + name + "[0]" if major > 3 else "DEPENDENT_QMD0_" + name] = value
      if major == 5: fields["DEPENDENT_QMD0_" + name] = value
    fields["DEPENDENT_QMD0_POINTER"] = next_address >> 8
    if major == 5: fields["DEPENDENT_QMD_POINTER[0]"] = next_address >> 8
  return fields

launches, judged = [], 0

def aliases(fields):
  """Headers name some bits twice: fields of an index, and those of slots beyond the ones there are."""
  bits = {}
  for name, value in fields.items():
    low, width = FIELDS[name]
    for bit in range(width): bits[low + bit] = value >> bit & 1
  return bits

def judge(block, bits):
  """What a launch descriptor says otherwise than it has to, in words; nothing if all is right."""
  for field, (low, width) in FIELDS.items():
    found, wanted = block >> low & (1 << width) - 1, sum(bits.get(low + bit, 0) << bit for bit in range(width))
    if found != wanted: return f"{field}: {found:#x}, wanted {wanted:#x}"
  return None

flipped = 0

def execute_qmd(self, address):
  global judged, flipped
  found, launch = read_fields(address), launches.pop(0)
  name = "DEPENDENT_QMD_ENABLE[0]" if "DEPENDENT_QMD_ENABLE[0]" in found else "DEPENDENT_QMD0_ENABLE"
  pointer = found["DEPENDENT_QMD0_POINTER"] << 8 if found[name] else 0
  assert bool(pointer) == launch["next"], "the next launch"
  bank = next((key for key in found if key.startswith("CONSTANT_BUFFER_ADDR_LOWER") and key.endswith("[0]")))
  bank0 = (found[bank] | found[bank.replace("LOWER", "UPPER")] << 32) << BANK_SHIFT
  launch["banks"] = {int(index): tuple(where) for index, where in launch["banks"].items()}
  launch["banks"][0] = (bank0, launch["banks"][0][1])
  bits = aliases(expected_fields(launch, pointer))
  block = int.from_bytes(ctypes.string_at(address, qmd_size), "little")
  complaint = judge(block, bits)
  assert complaint is None, complaint
  judged += len(FIELDS)
  if not flipped:
    # the judge notices any field that is damaged
    for field, (low, width) in FIELDS.items():
      for bit in {low, low + width - 1}:
        assert judge(block ^ 1 << bit, bits), f"nobody notices bit {bit} of {field}"
        flipped += 1
  assert ctypes.string_at(bank0, launch["banks"][0][1]).hex() == launch["bank0"], "constant bank 0"
  assert ctypes.string_at(launch["program"], 16).hex() == launch["code"], "code at the program's address"
  if pointer: execute_qmd(self, pointer)
nvgpu.GPFIFO.execute_qmd = execute_qmd

def exec_pcas2(self):
  address, action = self._state(nv.NVC6C0_SEND_PCAS_A) << 8, self._next_dword()
  assert action == 3, action
  self.execute_qmd(address)
  return nvgpu.SchedResult.CONT
nvgpu.GPFIFO._exec_pcas2 = exec_pcas2

class Driver(nvdriver.NVDriver):
  """The mock with what it lacks: classes, controls, and objects that are freed."""
  def __init__(self):
    super().__init__(gpus=1)
    self.alive, self.registered, self.ranges = {}, 0, {}

  def rm_alloc(self, argp):
    st = nv.NVOS21_PARAMETERS.from_address(argp)
    asked = st.hClass
    st.hClass = INSTEAD.get(asked, asked)
    result = super().rm_alloc(argp)
    st.hClass = asked
    self.alive[st.hObjectNew] = st.hObjectParent
    return result

  def rm_control(self, argp):
    st = nv.NVOS54_PARAMETERS.from_address(argp)
    words = (ctypes.c_uint32 * 256).from_address(st.params)
    if st.cmd == nv.NV0080_CTRL_CMD_GPU_GET_CLASSLIST_V2:
      classes = [0xc361, 0xc461, usermode, channel, compute, copy]
      words[0] = len(classes)
      for index, value in enumerate(classes): words[1 + index] = value
    elif st.cmd == nv.NV2080_CTRL_CMD_GR_GET_INFO:
      super().rm_control(argp)
      asked = nv.NV2080_CTRL_GR_GET_INFO_PARAMS.from_address(st.params)
      pairs = (ctypes.c_uint32 * (2 * asked.grInfoListSize)).from_address(asked.grInfoList)
      for index in range(0, len(pairs), 2):
        if pairs[index] == nv.NV2080_CTRL_GR_INFO_INDEX_SM_VERSION: pairs[index + 1] = sm_version
    elif st.cmd == 0x20801301:
      pairs = (ctypes.c_uint32 * (2 * words[0])).from_address(words[2] | words[3] << 32)
      for index in range(0, len(pairs), 2): pairs[index + 1] = 1 << 20
    elif st.cmd == 0x20800110: ctypes.memmove(st.params + 4, b"tinygrad's mock\0", 16)
    elif st.cmd == 0x20802a0a:
      ctypes.memmove(st.params, bytes([1, 0, 0, 0]), 4)
      words[32] = 3
    else: return super().rm_control(argp)
    return 0

  def free(self, handle):
    for child in [child for child, parent in self.alive.items() if parent == handle and child != handle]: self.free(child)
    del self.alive[handle]
    self.object_by_handle.pop(handle, None)

  def ctl_ioctl(self, request, argp):
    number = request & 0xff
    if number == 210:
      ctypes.memmove(argp + 8, b"580.95.05\0", 10)
      return 0
    if number == nv.NV_ESC_RM_FREE:
      self.free(nv.NVOS00_PARAMETERS.from_address(argp).hObjectOld)
      return 0
    return super().ctl_ioctl(request, argp)

  def uvm_ioctl(self, number, argp):
    long = lambda at: ctypes.c_uint64.from_address(argp + at).value
    if number in (26, 28, 38):
      self.registered -= 1
      return 0
    if number in (25, 27, 37): self.registered += 1
    if number == nv.UVM_CREATE_EXTERNAL_RANGE: self.ranges[long(0)] = long(8)
    if number == nv.UVM_FREE: assert self.ranges.pop(long(0)) == long(8)
    return super().uvm_ioctl(number, argp)

driver = Driver()
open_files = set()
trouble = []

def guarded(function):
  def inner(*words):
    try: return function(*words)
    except BaseException as error:
      import traceback
      traceback.print_exc()
      trouble.append(error)
      return -1
  return inner

@guarded
def opens(path):
  for file in driver.tracked_files:
    if file.path == path.decode():
      number = driver.open(file.path, 2, 0, file).fd
      open_files.add(number)
      return number
  return -1

@guarded
def closes(number):
  open_files.remove(number)
  return 0

@guarded
def ioctls(number, word, argument):
  return driver.opened_fds[number].ioctl(number, word, argument) or 0

@guarded
def maps(number, address, size):
  start = driver.opened_fds[number].mmap(address or None, size, 3, 1 | (0x10 if address else 0), number, 0)
  return start if isinstance(start, int) else ctypes.cast(start, ctypes.c_void_p).value

@guarded
def rings(_):
  driver._gpu_mmio_write(None, 0, None)
  return 0

@guarded
def expects(text):
  launches.append(json.loads(text.decode()))
  return 0

I32, U32, U64 = ctypes.c_int32, ctypes.c_uint32, ctypes.c_uint64
TYPES = [("open", ctypes.CFUNCTYPE(I32, ctypes.c_char_p), opens), ("close", ctypes.CFUNCTYPE(I32, I32), closes),
         ("ioctl", ctypes.CFUNCTYPE(I32, I32, U32, U64), ioctls), ("map", ctypes.CFUNCTYPE(U64, I32, U64, U64), maps),
         ("ring", ctypes.CFUNCTYPE(I32, U64), rings), ("expect", ctypes.CFUNCTYPE(I32, ctypes.c_char_p), expects)]
class Callbacks(ctypes.Structure): _fields_ = [(name, kind) for name, kind, _ in TYPES]

code = ctypes.CDLL(library).run(ctypes.byref(Callbacks(*(kind(function) for _, kind, function in TYPES))), fixtures.encode())
assert code == 0 and not trouble, f"status {code}, {len(trouble)} calls went wrong"
assert not launches, f"{len(launches)} launches were not made"
left = [f"objects {driver.alive}"] * bool(driver.alive) + [f"ranges {driver.ranges}"] * bool(driver.ranges)
assert not left and driver.registered == 0 and not open_files, f"not given back: {left} {driver.registered} {open_files}"
print(f"{generation}: {judged} fields of launch descriptors hold what they should; nothing is left ({flipped} bits flipped, all noticed)")
