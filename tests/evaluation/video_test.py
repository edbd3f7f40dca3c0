import pytest

from bt_acme.evaluation import video


@pytest.mark.parametrize(
  'name, message',
  [
    ('file/v.webm', 'cannot be written'),
    ('v.avi', 'must end in .webm or .gif'),
  ],
)
def test_a_video_that_cannot_be_written_is_refused_at_once(
  tmp_path, name, message
):
  (tmp_path / 'file').touch()
  with pytest.raises(ValueError, match=f'video=.*{name}.* {message}'):
    video.VideoWriter(str(tmp_path / name), frames_per_second=15)
  assert [path.name for path in tmp_path.iterdir()] == ['file']
